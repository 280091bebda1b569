#include "regnet/gpu.hpp"
#include "regnet/dispatch.hpp"
namespace regnet {
// Of orders known at run time only: where the same bits are asked for, speed is not.
template <>
void scatter_whole<Cuda>(Cuda cuda, int k, const TensorRef& value, const Where& where, const TensorRef& target, const Options& options) {
    by_degree(k, 3, [&](auto degree) {
        by_dim(target.dim(), [&](auto dim) {
            by_dtype(value.dtype, [&](auto zero) {
                constexpr int D = decltype(dim)::value, K = decltype(degree)::value;
                using T = decltype(zero);
                for_targets<D, T>(cuda, Scatter<D, -1, K, T, int64_t>{
                    View<D, const T>(value), Coords<D, T>(where.coords, where.relative, where.matrix), View<D, int64_t>(target),
                    Interp<D, T>(options.order, options.bound, options.extrapolate, target.shape.data() + 2, 0)});
            });
        });
    });
}
}  // namespace regnet
