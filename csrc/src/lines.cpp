#include "regnet/lines.hpp"
#include "regnet/dispatch.hpp"
#include "regnet/drivers.hpp"
namespace regnet {
namespace {
// kernel(Int<W>) makes the functor for bundles of W lines: wide where there are enough of them.
template <class T, class Make>
void along(Cpu cpu, const TensorRef& image, const TensorRef& out, int axis, Make&& make) {
    const Lines lines(image, axis);
    const int64_t outer = lines.outer, length = lines.length, inner = lines.inner;
    if (lines.count() == 0) return;
    const T* from = static_cast<const T*>(image.data);
    T* to = static_cast<T*>(out.data);
    constexpr int wide = 64 / sizeof(T);  // one cache line
    if (outer * inner >= wide) for_lines<wide>(cpu, from, to, outer, length, inner, make(Int<wide>{}, length));
    else for_lines<1>(cpu, from, to, outer, length, inner, make(Int<1>{}, length));
}
}  // namespace

template <>
void prefilter<Cpu>(Cpu cpu, const TensorRef& image, const TensorRef& out, const TensorRef&, int axis, int order, Bound bound, bool adjoint) {
    by_dtype(image.dtype, [&](auto zero) {
        using T = decltype(zero);
        along<T>(cpu, image, out, axis, [&](auto width, int64_t n) { return Prefilter<decltype(width)::value, T>(order, bound, n, adjoint); });
    });
}
template <>
void box_sum<Cpu>(Cpu cpu, const TensorRef& image, const TensorRef& out, const TensorRef&, int axis, int64_t window) {
    by_dtype(image.dtype, [&](auto zero) {
        using T = decltype(zero);
        along<T>(cpu, image, out, axis, [&](auto width, int64_t n) { return BoxSum<decltype(width)::value, T>{n, window / 2}; });
    });
}
}  // namespace regnet
