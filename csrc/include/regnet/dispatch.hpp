#pragma once
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include "regnet/ops.hpp"
#include "regnet/sampling.hpp"
namespace regnet {

template <int V> using Int = std::integral_constant<int, V>;

template <class F>
void by_dim(int dim, F&& f) {
    switch (dim) {
        case 1: return f(Int<1>{});
        case 2: return f(Int<2>{});
        case 3: return f(Int<3>{});
    }
    throw std::invalid_argument("expected 1, 2 or 3 spatial axes, got " + std::to_string(dim));
}
template <class F>
void by_dtype(DType t, F&& f) {
    if (t == DType::f32) return f(float{});
    f(double{});
}
// Full templates where speed matters: one order on all axes, up to cubic, last axis contiguous, places that an int can
// hold, no derivation asked for beyond the first.  Everything else takes the run-time body.
template <int K, class F>
void by_order(const Options& options, const TensorRef& volume, F&& f) {
    if constexpr (K <= 1) {
        bool uniform = volume.stride[volume.rank - 1] == 1;
        int64_t reach = 0;  // of the strides: from the first voxel of a channel to the last
        for (int d = 0; d < volume.dim(); ++d) {
            uniform &= options.order[d] == options.order[0] && volume.shape[2 + d] <= std::numeric_limits<int>::max() / 4;
            reach += (volume.shape[2 + d] - 1) * std::abs(volume.stride[2 + d]);
        }
        uniform &= reach <= std::numeric_limits<int>::max();
        if (uniform) switch (options.order[0]) {
            case 0: return f(Int<0>{});
            case 1: return f(Int<1>{});
            case 2: return f(Int<2>{});
            case 3: return f(Int<3>{});
        }
    }
    f(Int<-1>{});
}
// f(dimension, order, zero) with an Interp for `volume`, which holds the coefficients or receives them.
template <int K, class F>
void by_kernel(const TensorRef& volume, const Options& options, F&& f) {
    by_dim(volume.dim(), [&](auto dim) {
        by_dtype(volume.dtype, [&](auto zero) {
            by_order<K>(options, volume, [&](auto order) {
                constexpr int D = decltype(dim)::value, Order = decltype(order)::value;
                using T = decltype(zero);
                const int padded = Order < 0 ? 0 : power_of_two(Order + 1);
                f(dim, order, Interp<D, T>(options.order, options.bound, options.extrapolate, volume.shape.data() + 2, padded));
            });
        });
    });
}
template <class F>
void by_degree(int k, int most, F&& f) {
    switch (k > most ? -1 : k) {
        case 0: return f(Int<0>{});
        case 1: return f(Int<1>{});
        case 2: return f(Int<2>{});
        case 3: return f(Int<3>{});
    }
    throw std::invalid_argument("this needs a higher derivative of the spline than there is: pull can be differentiated four times in its coordinates, grad three times, hess twice");
}
}  // namespace regnet
