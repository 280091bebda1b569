#include "regnet/drivers.hpp"
#include "regnet/lattice.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
template <>
void lattice<Cpu>(Cpu cpu, const TensorRef& from, const TensorRef& to, const TensorRef&, int axis, int order, Bound bound, const Ramp& at, bool adjoint) {
    const Lines lines(from, axis);
    const int64_t outer = lines.outer, n = lines.length, inner = lines.inner, m = to.shape[axis + 2];
    by_dtype(from.dtype, [&](auto zero) {
        using T = decltype(zero);
        const Rows<T> rows(order, bound, at, adjoint ? m : n, adjoint ? n : m, adjoint);
        constexpr int64_t few = 64 / sizeof(T);  // lines in a bundle
        const bool bundled = inner < few && outer * inner >= few && n + m <= 8192;  // which should stay in the cache
        (bundled ? for_bundles<T> : for_rows<T>)(cpu, rows, static_cast<const T*>(from.data), static_cast<T*>(to.data), outer, n, inner);
    });
}
}  // namespace regnet
