#pragma once
// lattice.hpp for GPUs: the taps are tabulated once, then a thread makes one sample, or adds up one line.
#include "regnet/lattice.hpp"
namespace regnet {

template <class T> struct Tap { int64_t node; T weight; };

// The taps of one sample a thread, for all lines.
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
// From contiguous (outer, nodes, inner) to (outer, samples, inner), or the adjoint of that.
template <class T, bool Adjoint>
struct Along {
    const Tap<T>* table;
    int taps;
    const T* from;
    T* to;
    int64_t nodes, samples, inner;

    // Sample i; or line i, its samples in their order: the same bits in every run.
    REGNET_HD void operator()(int64_t i) const {
        const int64_t column = i % inner;
        if constexpr (Adjoint) {
            const T* source = from + i / inner * samples * inner + column;
            T* target = to + i / inner * nodes * inner + column;
            for (int64_t k = 0; k < nodes; ++k) target[k * inner] = 0;
            for (int64_t p = 0; p < samples; ++p)
                each(p, [&](int64_t node, T weight) { target[node * inner] += weight * source[p * inner]; });
        } else {
            const T* source = from + i / inner / samples * nodes * inner + column;
            T sum = 0;
            each(i / inner % samples, [&](int64_t node, T weight) { sum += weight * source[node * inner]; });
            to[i] = sum;
        }
    }
    template <class F>
    REGNET_HD void each(int64_t p, const F& f) const {
        for (const Tap<T>*tap = table + p * taps, *end = tap + taps; tap != end; ++tap)
            if (tap->node >= 0) f(tap->node, tap->weight);
    }
};
}  // namespace regnet
