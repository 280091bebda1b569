#include "regnet/launch.cuh"
#include "regnet/lattice.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
namespace {
template <class T> struct Tap { int64_t node; T weight; };

// The taps of one sample a thread, once for all lines.
template <class T>
struct Tabulate {
    Ruler ruler;
    Tap<T>* table;

    REGNET_HD void operator()(int64_t p) const {
        int64_t node[kMaxTaps];
        double weight[kMaxTaps];
        ruler.taps(p, node, weight);
        for (int i = 0; i <= ruler.order; ++i) table[p * (ruler.order + 1) + i] = {node[i], T(weight[i])};
    }
};
// One sample a thread.
template <class T>
struct SampleLattice {
    const Tap<T>* table;
    int taps;
    const T* from;
    T* to;
    int64_t nodes, samples, inner;

    REGNET_HD void operator()(int64_t i) const {
        const int64_t line = i / inner, p = line % samples;
        const T* source = from + line / samples * nodes * inner + i % inner;
        T sum = 0;
        for (const Tap<T>*tap = table + p * taps, *end = tap + taps; tap != end; ++tap)
            if (tap->node >= 0) sum += tap->weight * source[tap->node * inner];
        to[i] = sum;
    }
};
// One line a thread, its samples in their order: the same bits in every run.
template <class T>
struct SpreadLattice {
    const Tap<T>* table;
    int taps;
    const T* from;
    T* to;
    int64_t nodes, samples, inner;

    REGNET_HD void operator()(int64_t line) const {
        const T* source = from + line / inner * samples * inner + line % inner;
        T* target = to + line / inner * nodes * inner + line % inner;
        for (int64_t k = 0; k < nodes; ++k) target[k * inner] = 0;
        for (int64_t p = 0; p < samples; ++p)
            for (const Tap<T>*tap = table + p * taps, *end = tap + taps; tap != end; ++tap)
                if (tap->node >= 0) target[tap->node * inner] += tap->weight * source[p * inner];
    }
};
}  // namespace

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
        if (adjoint) launch(cuda, lines.outer * lines.inner, SpreadLattice<T>{table, order + 1, source, target, nodes, samples, lines.inner});
        else launch(cuda, lines.outer * samples * lines.inner, SampleLattice<T>{table, order + 1, source, target, nodes, samples, lines.inner});
    });
}
}  // namespace regnet
