#include "regnet/gpu.hpp"
#include "regnet/gpu_lines.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {

template <>
void prefilter<Cuda>(Cuda cuda, const TensorRef& from, const TensorRef& to, const TensorRef& workspace, int axis, int order, Bound bound, bool adjoint) {
    const Lines lines(to, axis);
    if (lines.count() == 0) return;
    by_dtype(to.dtype, [&](auto zero) {
        using T = decltype(zero);
        if (from.data != to.data) launch(cuda, lines.count(), Copy<T>{static_cast<const T*>(from.data), static_cast<T*>(to.data)});
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
        if (in_place) launch(cuda, lines.count(), Copy<T>{static_cast<const T*>(from.data), static_cast<T*>(workspace.data)});
        launch(cuda, lines.count(), Window<T>{static_cast<const T*>((in_place ? workspace : from).data), static_cast<T*>(to.data), lines.length, lines.inner, window / 2});
    });
}
}  // namespace regnet
