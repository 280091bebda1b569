#pragma once
#include "regnet/macros.hpp"
namespace regnet {

constexpr int kMaxOrder = 7;
constexpr int kMaxTaps = kMaxOrder + 1;

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
#pragma GCC unroll 8
    for (int d = 1; d <= degree; ++d) {
        const T inverse = T(1) / T(d);
        w[d] = t * w[d - 1] * inverse;
#pragma GCC unroll 8
        for (int j = d - 1; j > 0; --j) w[j] = ((t + T(d - j)) * w[j - 1] + (T(1 + j) - t) * w[j]) * inverse;
        w[0] = (T(1) - t) * w[0] * inverse;
    }
#pragma GCC unroll 8
    for (int d = 1; d <= deriv; ++d) {  // each difference is one derivative and one more tap
        w[degree + d] = w[degree + d - 1];
#pragma GCC unroll 8
        for (int j = degree + d - 1; j > 0; --j) w[j] = w[j - 1] - w[j];
        w[0] = -w[0];
    }
}
}  // namespace regnet
