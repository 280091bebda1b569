#include "regnet/lines.hpp"
#include "regnet/dispatch.hpp"
#include "regnet/drivers.hpp"
namespace regnet {
namespace {
// kernel(Int<W>) makes the functor for bundles of W lines: wide where there are enough of them.
template <class T, class Make>
void along(Cpu cpu, const TensorRef& image, int axis, Make&& make) {
    const Lines lines(image, axis);
    const int64_t outer = lines.outer, length = lines.length, inner = lines.inner;
    if (lines.count() == 0) return;
    T* data = static_cast<T*>(image.data);
    constexpr int wide = 64 / sizeof(T);  // one cache line
    if (outer * inner >= wide) for_lines<wide>(cpu, data, outer, length, inner, make(Int<wide>{}, length));
    else for_lines<1>(cpu, data, outer, length, inner, make(Int<1>{}, length));
}
}  // namespace

template <>
void prefilter<Cpu>(Cpu cpu, const TensorRef& image, const TensorRef&, int axis, int order, Bound bound, bool adjoint) {
    by_dtype(image.dtype, [&](auto zero) {
        using T = decltype(zero);
        along<T>(cpu, image, axis, [&](auto width, int64_t n) { return Prefilter<decltype(width)::value, T>(order, bound, n, adjoint); });
    });
}
template <>
void box_sum<Cpu>(Cpu cpu, const TensorRef& image, const TensorRef&, int axis, int64_t window) {
    by_dtype(image.dtype, [&](auto zero) {
        using T = decltype(zero);
        along<T>(cpu, image, axis, [&](auto width, int64_t n) { return BoxSum<decltype(width)::value, T>{n, window / 2}; });
    });
}
}  // namespace regnet
