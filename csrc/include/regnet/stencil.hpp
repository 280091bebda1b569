#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include "regnet/bound.hpp"
#include "regnet/macros.hpp"
#include "regnet/spline.hpp"
#include "regnet/tensor.hpp"
namespace regnet {

enum class Extrapolate : int { center, always, edge };  // part of the binding: regnet/ops/options.py

constexpr int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }
constexpr int power_of_two(int n) { int p = 1; while (p < n) p *= 2; return p; }

// Mixed derivatives are coded by one digit an axis, in base K + 1: the degree of derivation along that axis.
template <int K> constexpr int total_degree(int code) { int s = 0; for (; code; code /= K + 1) s += code % (K + 1); return s; }
// The code of a tensor index (d1, ..., dK) written as one number in base D.
template <int D, int K> constexpr int degree_code(int index) {
    int code = 0;
    for (int k = 0; k < K; ++k, index /= D) code += power(K + 1, D - 1 - index % D);
    return code;
}

template <class T, int L> struct LaneOf { typedef T type __attribute__((vector_size(L * sizeof(T)))); };
template <class T> struct LaneOf<T, 1> { typedef T type; };

// What a call says about interpolation, and the limits that follow from it.
template <int D, class T>
struct Interp {
    int order[D];
    Bound bound[D];
    int64_t size[D];
    T inside_low[D], inside_high[D];  // first taps between which every tap, lane padding included, lies in the grid
    T view_low[D], view_high[D];      // coordinates between which a sample counts

    Interp(const int* orders, const Bound* bounds, Extrapolate extrapolate, const int64_t* sizes, int padded_taps) {
        constexpr T infinity = std::numeric_limits<T>::infinity();
        for (int d = 0; d < D; ++d) {
            order[d] = orders[d];
            bound[d] = bounds[d];
            size[d] = sizes[d];
            const T n = T(sizes[d]);
            view_low[d] = extrapolate == Extrapolate::always ? -infinity : extrapolate == Extrapolate::center ? T(-0.05) : T(-0.55);
            view_high[d] = extrapolate == Extrapolate::always ? infinity : extrapolate == Extrapolate::center ? n - 1 + T(0.05) : n - 1 + T(0.55);
            // A nearest tap can be in the grid while its coordinate is not in view: leave the border to the careful path.
            const int margin = orders[d] == 0 && extrapolate == Extrapolate::center ? 1 : 0;
            const int64_t last = sizes[d] - (d == D - 1 && padded_taps ? padded_taps : orders[d] + 1) - margin;
            inside_low[d] = T(margin);
            inside_high[d] = T(last);
            if (int64_t(inside_high[d]) > last) inside_high[d] = std::nextafter(inside_high[d], T(0));  // rounded up: above 2^24
        }
    }
};

// The weights around one coordinate, per axis and per degree of derivation 0..K: D * taps numbers, not taps^D.
// Order -1: known at run time only.
template <int D, int Order, int K, class T>
struct Stencil {
    static constexpr int taps = Order < 0 ? kMaxTaps : Order + 1;
    static constexpr int lanes = Order < 0 ? taps : power_of_two(taps);
    using Lane = typename LaneOf<T, lanes>::type;
    static constexpr int codes = power(K + 1, D);

    T first[D];  // kept as T: only coordinates known to be moderate may become integers
    T weight[D][K + 1][lanes];

    REGNET_HD Stencil(const T (&x)[D], const Interp<D, T>& how) {
#pragma GCC unroll 3
        for (int d = 0; d < D; ++d) {
            const int order = Order < 0 ? how.order[d] : Order;
            const T shifted = x[d] - T(order - 1) / 2;
            first[d] = std::floor(shifted);
            const T t = shifted - first[d];
#pragma GCC unroll 4
            for (int k = 0; k <= K; ++k) {
                bspline_weights(order, k, t, weight[d][k]);
                for (int j = taps; j < lanes; ++j) weight[d][k][j] = 0;
            }
        }
    }
    // Every tap in the grid?  False for NaN.
    REGNET_HD bool inside(const Interp<D, T>& how) const {
        bool yes = true;
        for (int d = 0; d < D; ++d) yes &= (first[d] >= how.inside_low[d]) & (first[d] <= how.inside_high[d]);
        return yes;
    }
};

enum class Place { view, outside, nowhere };  // in view; counts as zero; NaN

template <int D, class T>
REGNET_HD Place place(const T (&x)[D], const Interp<D, T>& how) {
    bool in_view = true, is_nan = false;
    for (int d = 0; d < D; ++d) {
        is_nan |= x[d] != x[d];
        in_view &= std::fabs(x[d]) < T(1 << 30) && x[d] >= how.view_low[d] && x[d] <= how.view_high[d];
    }
    return is_nan ? Place::nowhere : in_view ? Place::view : Place::outside;
}

// Taps of a stencil that lies inside: offsets are multiples of the stride.
template <int D, int Order, int K, class T>
struct Interior {
    const Stencil<D, Order, K, T>& stencil;
    const int64_t (&stride)[D];
    REGNET_HD static constexpr int count(int) { return Order + 1; }
    REGNET_HD int64_t offset(int axis, int i) const { return i * stride[axis]; }
    REGNET_HD T weight(int axis, int k, int i) const { return stencil.weight[axis][k][i]; }
    REGNET_HD int64_t base() const {
        int64_t o = 0;
        for (int d = 0; d < D; ++d) o += int64_t(int(stencil.first[d])) * stride[d];
        return o;
    }
};

// Taps folded into the grid by the bounds; those that contribute nothing are left out, as are those whose index
// along the first axis is not in [low, high).
template <int D, int Order, int K, class T>
struct Folded {
    int counts[D];
    int64_t offsets[D][Stencil<D, Order, K, T>::taps];
    T weights[D][K + 1][Stencil<D, Order, K, T>::taps];

    REGNET_HD Folded(const Stencil<D, Order, K, T>& stencil, const Interp<D, T>& how, const int64_t (&stride)[D],
                     int64_t low = 0, int64_t high = std::numeric_limits<int64_t>::max()) {
        for (int d = 0; d < D; ++d) {
            const int taps = (Order < 0 ? how.order[d] : Order) + 1;
            int n = 0;
            for (int i = 0; i < taps; ++i) {
                const Node node = fold(how.bound[d], int64_t(stencil.first[d]) + i, how.size[d]);
                if (node.sign == 0 || (d == 0 && (node.index < low || node.index >= high))) continue;
                offsets[d][n] = node.index * stride[d];
                for (int k = 0; k <= K; ++k) weights[d][k][n] = node.sign * stencil.weight[d][k][i];
                ++n;
            }
            counts[d] = n;
        }
    }
    REGNET_HD int count(int axis) const { return counts[axis]; }
    REGNET_HD int64_t offset(int axis, int i) const { return offsets[axis][i]; }
    REGNET_HD T weight(int axis, int k, int i) const { return weights[axis][k][i]; }
};

// acc[code] = the weighted sum over the taps of axes Axis .. Leaf - 1, derived as the digits of `code` say; codes
// of a total degree above K are not computed.  A leaf is a V: one number, or a vector along the last axis.
template <int K, int Leaf, int Axis, class V, class T, class Taps>
REGNET_HD void gather(const Taps& taps, const T* p, V* acc) {
    if constexpr (Axis == Leaf) {
        std::memcpy(acc, p, sizeof(V));
    } else {
        constexpr int rest = power(K + 1, Leaf - 1 - Axis);
#pragma GCC unroll 16
        for (int code = 0; code < (K + 1) * rest; ++code) acc[code] = V{};
        for (int i = 0; i < taps.count(Axis); ++i) {
            V part[rest];
            gather<K, Leaf, Axis + 1>(taps, p + taps.offset(Axis, i), part);
#pragma GCC unroll 4
            for (int k = 0; k <= K; ++k)
#pragma GCC unroll 16
                for (int r = 0; r < rest; ++r)
                    if (k + total_degree<K>(r) <= K) acc[k * rest + r] += taps.weight(Axis, k, i) * part[r];
        }
    }
}

// The adjoint: each tap receives the sum over `code` of value[code] times its derived weights.
template <int K, int D, int Axis, class T, class Taps>
REGNET_HD void spread(const Taps& taps, T* p, const T* value) {
    if constexpr (Axis == D) {
        *p += *value;
    } else {
        constexpr int rest = power(K + 1, D - 1 - Axis);
        for (int i = 0; i < taps.count(Axis); ++i) {
            T part[rest];
#pragma GCC unroll 16
            for (int r = 0; r < rest; ++r) {
                part[r] = 0;
#pragma GCC unroll 4
                for (int k = 0; k <= K; ++k)
                    if (k + total_degree<K>(r) <= K) part[r] += value[k * rest + r] * taps.weight(Axis, k, i);
            }
            spread<K, D, Axis + 1>(taps, p + taps.offset(Axis, i), part);
        }
    }
}

// All mixed derivatives of total degree K at one place: derived[code].
template <int D, int Order, int K, class T>
REGNET_HD void derivatives(const Stencil<D, Order, K, T>& stencil, const Interior<D, Order, K, T>& taps, const T* p, T* derived) {
    using S = Stencil<D, Order, K, T>;
    using Lane = typename S::Lane;
    constexpr int heads = power(K + 1, D - 1);
    Lane acc[heads];
    gather<K, D - 1, 0>(taps, p, acc);
#pragma GCC unroll 16
    for (int head = 0; head < heads; ++head) {
        const int k = K - total_degree<K>(head);
        if (k < 0) continue;
        T sum = 0;
        if constexpr (S::lanes == 1) {
            sum = acc[head] * stencil.weight[D - 1][k][0];
        } else {
            Lane w;
            std::memcpy(&w, stencil.weight[D - 1][k], sizeof w);
            w *= acc[head];
#pragma GCC unroll 8
            for (int j = 0; j < S::taps; ++j) sum += w[j];
        }
        derived[head * (K + 1) + k] = sum;
    }
}
template <int D, int Order, int K, class T>
REGNET_HD void derivatives(const Stencil<D, Order, K, T>&, const Folded<D, Order, K, T>& taps, const T* p, T* derived) {
    gather<K, D, 0>(taps, p, derived);
}
}  // namespace regnet
