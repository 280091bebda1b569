#include "regnet/gpu.hpp"
#include "regnet/gpu_lattice.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {

template <>
void lattice<Cuda>(Cuda cuda, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int order, Bound bound, const Ramp& at, bool adjoint) {
    const Lines lines(from, axis);
    const int64_t other = to.shape[axis + 2], nodes = adjoint ? other : lines.length, samples = adjoint ? lines.length : other;
    by_dtype(from.dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto source = static_cast<const T*>(from.data);
        const auto target = static_cast<T*>(to.data);
        const auto table = static_cast<Tap<T>*>(workspace.data);
        launch(cuda, samples, Tabulate<T>{{order, bound, at, nodes}, table});
        if (adjoint) launch(cuda, lines.outer * lines.inner, Along<T, true>{table, order + 1, source, target, nodes, samples, lines.inner});
        else launch(cuda, lines.outer * samples * lines.inner, Along<T, false>{table, order + 1, source, target, nodes, samples, lines.inner});
    });
}
}  // namespace regnet
