#include "regnet/launch.cuh"
#include "regnet/lines.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
namespace {
// One line a thread: neighbouring threads read neighbouring lines, which lie side by side but along the last axis.
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
// One number a thread, summed anew: no running sum that drifts, so single precision will do.
template <class T>
struct Window {
    const T* from;
    T* to;
    int64_t n, inner, half;

    REGNET_HD void operator()(int64_t i) const {
        const int64_t k = i / inner % n, first = k < half ? 0 : k - half, last = k + half < n ? k + half : n - 1;
        T sum = 0;
        for (int64_t j = first; j <= last; ++j) sum += from[i + (j - k) * inner];
        to[i] = sum;
    }
};
}  // namespace

template <>
void prefilter<Cuda>(Cuda cuda, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int order, Bound bound, bool adjoint) {
    const Lines lines(to, axis);
    if (lines.count() == 0) return;
    by_dtype(to.dtype, [&](auto zero) {
        using T = decltype(zero);
        if (from.data != to.data) copy(cuda, to.data, from.data, lines.count() * sizeof(T));
        const Filter<T> filter(order, bound, lines.length, adjoint);
        double* room = static_cast<double*>(workspace.data);
        T* lu = reinterpret_cast<T*>(room + lines.length * filter.band.width());
        if (filter.band.half) launch(cuda, 1, Factorise<T>{filter.band, room, lu});
        launch(cuda, lines.outer * lines.inner, FilterLine<T>{filter, static_cast<T*>(to.data), lines.inner, lu});
    });
}
template <>
void box_sum<Cuda>(Cuda cuda, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int64_t window) {
    const Lines lines(to, axis);
    by_dtype(to.dtype, [&](auto zero) {
        using T = decltype(zero);
        const bool in_place = from.data == to.data;
        if (in_place) copy(cuda, workspace.data, from.data, lines.count() * sizeof(T));
        launch(cuda, lines.count(), Window<T>{static_cast<const T*>((in_place ? workspace : from).data), static_cast<T*>(to.data), lines.length, lines.inner, window / 2});
    });
}
}  // namespace regnet
