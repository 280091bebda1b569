// Included by scatter.cpp: the entry point, written once for every device.
#include "regnet/dispatch.hpp"
namespace regnet {
template <class Device>
void scatter(Device device, int k, const TensorRef& value, const Where& where, const TensorRef& target, const Options& options) {
    by_degree(k, 3, [&](auto degree) {
        constexpr int K = decltype(degree)::value;
        by_kernel<K>(target, options, [&](auto dim, auto order, auto how) {
            constexpr int D = decltype(dim)::value;
            using T = std::remove_reference_t<decltype(how.view_low[0])>;
            for_targets<D, T>(device, Scatter<D, decltype(order)::value, K, T>{
                View<D, const T>(value), Coords<D, T>(where.coords, where.relative, where.matrix), View<D, T>(target), how});
        });
    });
}
}  // namespace regnet
