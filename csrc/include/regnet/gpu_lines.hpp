#pragma once
// lines.hpp for GPUs: one line a thread, or one number.
#include "regnet/lines.hpp"
namespace regnet {

template <class T>
struct Copy {
    const T* from;
    T* to;
    REGNET_HD void operator()(int64_t i) const { to[i] = from[i]; }
};
// Neighbouring threads read neighbouring lines, which lie side by side but along the last axis.
template <class T>
struct FilterLine {
    Filter<T> filter;
    T* data;
    int64_t inner;
    const T* lu;

    REGNET_HD void operator()(int64_t line) const {
        filter.template apply<1>(data + line / inner * filter.n * inner + line % inner, inner, lu);
    }
};
template <class T>
struct Factorise {
    Band band;
    double* room;
    T* lu;

    REGNET_HD void operator()(int64_t) const { band.factorise(room, lu); }
};
// Each sum anew and compensated, after Kahan (1965): as exact in single precision as the CPU's in double.
template <class T>
struct Window {
    const T* from;
    T* to;
    int64_t n, inner, half;

    REGNET_HD void operator()(int64_t i) const {
        const int64_t k = i / inner % n, first = k < half ? 0 : k - half, last = k + half < n ? k + half : n - 1;
        T sum = 0, lost = 0;
        for (int64_t j = first; j <= last; ++j) {
            const T more = from[i + (j - k) * inner] - lost, next = sum + more;
            lost = (next - sum) - more;
            if (lost != lost) lost = 0;  // infinities have no difference
            sum = next;
        }
        to[i] = sum;
    }
};
}  // namespace regnet
