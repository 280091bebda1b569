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

// What a call says about interpolation, and the limits that follow from it.
template <int D, class T>
struct Interp {
    int order[D];
    Bound bound[D];
    int64_t size[D];
    T inside_low[D], inside_end[D];   // every tap, lane padding included, is in the grid: low <= x - (taps - 2) / 2 < end
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
            const int64_t end = sizes[d] - (d == D - 1 && padded_taps ? padded_taps : taps_of(orders[d])) - margin + 1;
            inside_low[d] = T(margin);
            inside_end[d] = T(end);
            if (int64_t(inside_end[d]) > end) inside_end[d] = std::nextafter(inside_end[d], T(0));  // rounded up: above 2^24
        }
    }
};

// The weights around one coordinate, per axis and per degree of derivation 0..K: D * taps numbers, not taps^D.
// Order -1: known at run time only.
template <int D, int Order, int K, class T>
struct Stencil {
    static constexpr int taps = Order < 0 ? kMaxTaps : Order + 1;
    int64_t first[D];
    T weight[D][K + 1][taps];

    REGNET_HD Stencil(const T (&x)[D], const Interp<D, T>& how) {  // x moderate: an integer can hold it
        for (int d = 0; d < D; ++d) {
            const int order = Order < 0 ? how.order[d] : Order;
            const T shifted = x[d] - T(taps_of(order) - 2) / 2, floor = std::floor(shifted);
            first[d] = int64_t(floor);
            for (int k = 0; k <= K; ++k) kernel_weights<T>(order, k, shifted - floor, weight[d][k]);
        }
    }
};

// The stencils of some samples in a row, side by side, so that the arithmetic up to the weights is done on vectors.
template <int D, int Order, int K, class T>
struct Block {
    static constexpr int size = 32 / sizeof(T), taps = Order + 1;
    using Pack = typename LaneOf<T, size>::type;
    using Ints = typename LaneOf<int, size>::type;
    using Mask = decltype(Pack{} < Pack{});

    decltype(Mask{}[0] + 0) inside[size];  // every tap in the grid?  False for NaN.  Only then the rest means anything.
    int first[D][size];
    T weight[D][K + 1][taps][size];

    REGNET_HD Block(const Pack (&x)[D], const Interp<D, T>& how) {
        Mask within = Mask{} == Mask{};
#pragma GCC unroll 3
        for (int d = 0; d < D; ++d) {
            const Pack shifted = x[d] - T(Order - 1) / 2;
            const Mask here = (shifted >= how.inside_low[d]) & (shifted < how.inside_end[d]);
            within &= here;
            // Not negative where it matters, so that the cast is a floor; and defined elsewhere too.
            const Pack kept = here ? shifted : Pack{};
            const Ints floor = __builtin_convertvector(kept, Ints);
            std::memcpy(first[d], &floor, sizeof floor);
            const Pack t = kept - __builtin_convertvector(floor, Pack);
#pragma GCC unroll 4
            for (int k = 0; k <= K; ++k) {
                Pack w[taps];
                bspline_weights<T>(Order, k, t, w);
                std::memcpy(weight[d][k], w, sizeof w);
            }
        }
        std::memcpy(inside, &within, sizeof within);
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

// Taps of sample s of a block, which lies inside: offsets are multiples of the stride.
template <int D, int Order, int K, class T>
struct Interior {
    using Lane = typename LaneOf<T, power_of_two(Order + 1)>::type;
    const Block<D, Order, K, T>& block;
    const int s;
    const int64_t (&stride)[D];
    REGNET_HD static constexpr int count(int) { return Order + 1; }
    REGNET_HD int64_t offset(int axis, int i) const { return i * stride[axis]; }
    REGNET_HD T weight(int axis, int k, int i) const { return block.weight[axis][k][i][s]; }
    REGNET_HD int64_t base() const {
        int64_t o = 0;
        for (int d = 0; d < D; ++d) o += block.first[d][s] * stride[d];
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
            const int taps = taps_of(Order < 0 ? how.order[d] : Order);
            int n = 0;
            for (int i = 0; i < taps; ++i) {
                const Node node = fold(how.bound[d], stencil.first[d] + i, how.size[d]);
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
REGNET_HD void derivatives(const Interior<D, Order, K, T>& taps, const T* p, T* derived) {
    constexpr int heads = power(K + 1, D - 1);
    typename Interior<D, Order, K, T>::Lane acc[heads];
    gather<K, D - 1, 0>(taps, p, acc);
#pragma GCC unroll 16
    for (int head = 0; head < heads; ++head) {
        const int k = K - total_degree<K>(head);
        if (k < 0) continue;
        T lane[power_of_two(Order + 1)], sum = 0;
        std::memcpy(lane, &acc[head], sizeof lane);
#pragma GCC unroll 8
        for (int j = 0; j <= Order; ++j) sum += lane[j] * taps.weight(D - 1, k, j);
        derived[head * (K + 1) + k] = sum;
    }
}
template <int D, int Order, int K, class T>
REGNET_HD void derivatives(const Folded<D, Order, K, T>& taps, const T* p, T* derived) {
    gather<K, D, 0>(taps, p, derived);
}
}  // namespace regnet
