#include "regnet/lattice.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
template <>
void lattice<Cpu>(Cpu cpu, const TensorRef& from, const TensorRef& to, int axis, int order, Bound bound, const Ramp& at, bool adjoint) {
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < from.rank; ++i) (i < axis + 2 ? outer : inner) *= i == axis + 2 ? 1 : from.shape[i];
    const int64_t n = from.shape[axis + 2], m = to.shape[axis + 2];
    by_dtype(from.dtype, [&](auto zero) {
        using T = decltype(zero);
        const Rows<T> rows(order, bound, at, adjoint ? m : n, adjoint ? n : m, adjoint);
        constexpr int64_t few = 64 / sizeof(T);  // lines in a bundle
        const bool bundled = inner < few && outer * inner >= few && n + m <= 8192;  // which should stay in the cache
        (bundled ? for_bundles<T> : for_rows<T>)(cpu, rows, static_cast<const T*>(from.data), static_cast<T*>(to.data), outer, n, inner);
    });
}
}  // namespace regnet
