// Included by sample.cpp: the entry point, written once for every device.
#include "regnet/dispatch.hpp"
namespace regnet {
template <class Device>
void sample(Device device, int k, const TensorRef& coeff, const Where& where, const TensorRef& out, const Options& options) {
    by_degree(k, 3, [&](auto degree) {
        constexpr int K = decltype(degree)::value;
        by_kernel<K>(coeff, options, [&](auto dim, auto order, auto how) {
            constexpr int D = decltype(dim)::value;
            using T = std::remove_reference_t<decltype(how.view_low[0])>;
            for_samples<D, T>(device, Sample<D, decltype(order)::value, K, T>{
                View<D, const T>(coeff), Coords<D, T>(where.coords, where.relative, where.matrix), View<D, T>(out), how, T(options.nowhere)});
        });
    });
}
}  // namespace regnet
