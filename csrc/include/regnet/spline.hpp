#pragma once
#include "regnet/macros.hpp"
namespace regnet {

constexpr int kMaxOrder = 7;
constexpr int kMaxTaps = kMaxOrder + 1;
constexpr int kKeys = kMaxOrder + 1;  // in place of an order: the bicubic kernel of torch; see regnet/ops/options.py

// How many nodes a coordinate x sees: from floor(x - (taps - 2) / 2) on, for every kernel.
REGNET_HD constexpr int taps_of(int order) { return order == kKeys ? 4 : order + 1; }

// w[j] = d^deriv/dx^deriv of the centred B-spline of degree `order`, at x - (first + j), for the order + 1 taps
// of a coordinate x, where first = floor(x - (order - 1) / 2) and t in [0, 1) is what floor took away.
// By the Cox-de Boor recursion, so one body serves every order and no polynomial is typed by hand; the compiler
// folds it when `order` and `deriv` are constants.  At a knot the right-hand piece counts.  T is the type of the
// numbers, V one of them or a vector of them.
template <class T, class V>
REGNET_HD void bspline_weights(int order, int deriv, V t, V* w) {
    const int degree = order - deriv;
    if (degree < 0) {
        for (int j = 0; j <= order; ++j) w[j] = V{};
        return;
    }
    w[0] = V{} + T(1);
REGNET_UNROLL(8)
    for (int d = 1; d <= degree; ++d) {
        const T inverse = T(1) / T(d);
        w[d] = t * w[d - 1] * inverse;
REGNET_UNROLL(8)
        for (int j = d - 1; j > 0; --j) w[j] = ((t + T(d - j)) * w[j - 1] + (T(1 + j) - t) * w[j]) * inverse;
        w[0] = (T(1) - t) * w[0] * inverse;
    }
REGNET_UNROLL(8)
    for (int d = 1; d <= deriv; ++d) {  // each difference is one derivative and one more tap
        w[degree + d] = w[degree + d - 1];
REGNET_UNROLL(8)
        for (int j = degree + d - 1; j > 0; --j) w[j] = w[j - 1] - w[j];
        w[0] = -w[0];
    }
}

// The `deriv`-th derivative at t of a cubic, whose coefficients are given from the constant up.
template <class T, class V>
REGNET_HD V cubic(const int (&coefficient)[4], int deriv, V t) {
    V sum{};
    for (int k = 3; k >= deriv; --k) {
        int c = coefficient[k];
        for (int i = 0; i < deriv; ++i) c *= k - i;
        sum = sum * t + T(c);
    }
    return sum;
}

// The same for Keys' cubic convolution with a = -3/4, whose interpolant is, between nodes 0 and 1, the cubic with
// their values and with -a times the difference of both neighbours as slope at either: Hermite's form.
template <class T, class V>
REGNET_HD void keys_weights(int deriv, V t, V* w) {
    constexpr T a = T(-0.75);
    const V value = cubic<T>({0, 0, 3, -2}, deriv, t);  // of node 1; node 0 has what it lacks to 1
    const V slope0 = a * cubic<T>({0, 1, -2, 1}, deriv, t), slope1 = a * cubic<T>({0, 0, -1, 1}, deriv, t);
    w[0] = slope0;
    w[1] = T(deriv == 0) - value + slope1;
    w[2] = value - slope0;
    w[3] = -slope1;
}

template <class T, class V>
REGNET_HD void kernel_weights(int order, int deriv, V t, V* w) {
    if (order == kKeys) keys_weights<T>(deriv, t, w);
    else bspline_weights<T>(order, deriv, t, w);
}
}  // namespace regnet
