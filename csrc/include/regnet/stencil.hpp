#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include "regnet/bound.hpp"
#include "regnet/macros.hpp"
#include "regnet/pack.hpp"
#include "regnet/spline.hpp"
namespace regnet {

enum class Extrapolate : int { center, always, edge };  // part of the binding: regnet/ops/options.py

constexpr int power(int base, int exponent) {
    int p = 1;
    for (; exponent > 0; --exponent) p *= base;
    return p;
}

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
    T inside_low[D], inside_end[D];   // every tap, padding included, is in the grid: low <= x - (taps - 2) / 2 < end
    T view_low[D], view_high[D];      // coordinates between which a sample counts
    Sides sides[D];

    Interp(const int* orders, const Bound* bounds, Extrapolate extrapolate, const int64_t* sizes, int padded_taps) {
        constexpr T infinity = std::numeric_limits<T>::infinity();
        for (int d = 0; d < D; ++d) {
            order[d] = orders[d];
            bound[d] = bounds[d];
            size[d] = sizes[d];
            const T n = T(sizes[d]);
            view_low[d] = extrapolate == Extrapolate::always ? -infinity : extrapolate == Extrapolate::center ? T(-0.05) : T(-0.55);
            view_high[d] = extrapolate == Extrapolate::always ? infinity : extrapolate == Extrapolate::center ? n - 1 + T(0.05) : n - 1 + T(0.55);
            sides[d] = regnet::sides(bounds[d], int(sizes[d]));
            // A nearest tap can be in the grid while its coordinate is not in view: leave the border to the careful path.
            const int margin = orders[d] == 0 && extrapolate == Extrapolate::center ? 1 : 0;
            const int64_t end = sizes[d] - (d == D - 1 && padded_taps ? padded_taps : taps_of(orders[d])) - margin + 1;
            inside_low[d] = T(margin);
            inside_end[d] = T(end);
            if (int64_t(inside_end[d]) > end) inside_end[d] = std::nextafter(inside_end[d], T(0));  // rounded up: above 2^24
        }
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

// The rows of a target's first axis that receive something.  Every sum is taken in the same order whatever the slab.
struct Slab {
    int64_t low = 0, high = std::numeric_limits<int64_t>::max();
    REGNET_HD bool everything() const { return high == std::numeric_limits<int64_t>::max(); }
};

#ifdef REGNET_PACKS
// The taps of samples in a row, side by side, in the grid as they are.  Those of a sample that is not inside can be
// read but mean nothing.
template <int D, int Order, int K, class T>
struct Interior {
    using Lanes = PackOf<T>;
    using V = typename Lanes::V;
    using Ints = typename Lanes::Ints;
    static constexpr int width = power_of_two(Order + 1);  // numbers read at once along the last axis

    bool all;                                   // of the samples in use are inside the grid, with every tap
    int begin[Lanes::size];                     // where the first tap lies, in elements
    bool whole = true;                          // every tap counts; else, of sample s, those along the first axis
    int low[Lanes::size], high[Lanes::size];    // from low[s] to high[s] - 1
    V weights[D][K + 1][Order + 1];
    const int64_t (&stride)[D];

    REGNET_HD Interior(const V (&x)[D], int used, const Interp<D, T>& how, const int64_t (&strides)[D], Slab slab = {}) : stride(strides) {
        const typename Lanes::Mask in_use = Lanes::iota() < V{} + T(used);
        typename Lanes::Mask inside = in_use;
#pragma GCC unroll 3
        for (int d = 0; d < D; ++d) {
            const V shifted = x[d] - T(Order - 1) / 2;
            inside &= (shifted >= how.inside_low[d]) & (shifted < how.inside_end[d]);  // false for NaN
        }
        all = !Lanes::any(in_use & ~inside);
        Ints start{}, first{};
#pragma GCC unroll 3
        for (int d = 0; d < D; ++d) {
            const V shifted = inside ? x[d] - T(Order - 1) / 2 : V{};  // not negative, so that the cast is a floor
            const Ints floor = __builtin_convertvector(shifted, Ints);
            if (d == 0) first = floor;
            start += floor * int(stride[d]);
            const V t = shifted - __builtin_convertvector(floor, V);
#pragma GCC unroll 4
            for (int k = 0; k <= K; ++k) bspline_weights<T>(Order, k, t, weights[d][k]);
        }
        std::memcpy(begin, &start, sizeof start);
        if (slab.everything()) return;  // nothing is added
        const Ints lowest = int(slab.low) - first, highest = __builtin_convertvector(in_use, Ints) & (int(slab.high) - first);
        std::memcpy(low, &lowest, sizeof low);
        std::memcpy(high, &highest, sizeof high);
        for (int s = 0; s < Lanes::size; ++s) whole &= low[s] <= 0 && high[s] > Order;
    }
    REGNET_HD static constexpr int count(int) { return Order + 1; }
    REGNET_HD int64_t offset(int axis, int i) const { return i * stride[axis]; }
    REGNET_HD V weight(int axis, int k, int i) const { return weights[axis][k][i]; }
    REGNET_HD V kept(int, int, V v) const { return v; }
    REGNET_HD void read(const T* p, int64_t at, V (&row)[width]) const { read_turned<width>(p + at, begin, row); }
    REGNET_HD void add(T* p, int64_t at, int first_axis_tap, const V (&row)[width]) const {
        T numbers[Order + 1][Lanes::size];
        std::memcpy(numbers, row, sizeof numbers);
        const auto each = [&](auto&& counts) {
            for (int s = 0; s < Lanes::size; ++s)
#pragma GCC unroll 4
                for (int i = 0; i <= Order; ++i)
                    if (counts(s, D == 1 ? i : first_axis_tap)) p[at + begin[s] + i] += numbers[i][s];
        };
        if (whole) each([](int, int) { return true; });
        else each([&](int s, int tap) { return low[s] <= tap && tap < high[s]; });
    }
};

// The same where some taps lie outside the grid, not more than once its size away.  What is not `served`, because it
// lies farther, or out of view, or is no number, is for Folded.
template <int D, int Order, int K, class T>
struct Bordered {
    using Lanes = PackOf<T>;
    using V = typename Lanes::V;
    using Ints = typename Lanes::Ints;
    using Mask = typename Lanes::Mask;
    static constexpr int taps = Order + 1, width = power_of_two(taps);

    Mask served;
    bool straight;            // along the last axis all taps are in the grid as they are, padding included
    Slab slab;
    Ints first[taps];         // indices along the first axis
    Ints offsets[D][taps];    // in elements
    V weights[D][K + 1][taps];
    Mask dead[D][taps];       // the tap contributes nothing, whatever stands there

    REGNET_HD Bordered(const V (&x)[D], int used, const Interp<D, T>& how, const int64_t (&stride)[D], Slab rows = {}) : slab(rows) {
        served = Lanes::iota() < V{} + T(used);
        for (int d = 0; d < D; ++d) {
            const V limit = V{} + T(1 << 22);  // far from where an int or a float ends
            served &= (x[d] >= how.view_low[d]) & (x[d] <= how.view_high[d]) & (x[d] > -limit) & (x[d] < limit);
        }
        using Narrow = decltype(Ints{} < Ints{});
        Narrow in_grid = ~Narrow{};
        for (int d = 0; d < D; ++d) {
            const V shift = V{} + T(Order - 1) / 2, place = served ? x[d] : shift, shifted = place - shift;
            Ints floor = __builtin_convertvector(shifted, Ints);
            floor += __builtin_convertvector(__builtin_convertvector(floor, V) > shifted, Ints);  // true is -1
            const V t = place - (__builtin_convertvector(floor, V) + shift);  // exact, where shifted may be rounded
            for (int k = 0; k <= K; ++k) bspline_weights<T>(Order, k, t, weights[d][k]);
            const int size = int(how.size[d]);
            if (d == D - 1) straight = !Lanes::any(__builtin_convertvector((floor < 0) | (floor > size - width), Mask));
            const Side before = how.sides[d].before, behind = how.sides[d].behind;
            const Ints edge = Ints{} - (how.bound[d] == Bound::dst1);
            for (int i = 0; i < taps; ++i) {
                const Ints index = floor + i;
                Ints folded = index < 0 ? index * before.slope + before.offset : index >= size ? index * behind.slope + behind.offset : index;
                const Ints sign = index < 0 ? Ints{} + before.sign : index >= size ? Ints{} + behind.sign : Ints{} + 1;
                const Ints nothing = (sign == 0) | (edge & ((folded == -1) | (folded == size)));
                folded = nothing ? Ints{} : folded;
                in_grid &= (folded >= 0) & (folded < size);
                if (d == 0) first[i] = folded;
                offsets[d][i] = folded * int(stride[d]);
                dead[d][i] = __builtin_convertvector(nothing, Mask);
                for (int k = 0; k <= K; ++k) weights[d][k][i] *= __builtin_convertvector(sign, V);
            }
        }
        served &= __builtin_convertvector(in_grid, Mask);
        for (int d = 0; d < D; ++d)
            for (int i = 0; i < taps; ++i) offsets[d][i] = in_grid ? offsets[d][i] : Ints{};
    }
    REGNET_HD static constexpr int count(int) { return taps; }
    REGNET_HD Ints offset(int axis, int i) const { return offsets[axis][i]; }
    REGNET_HD V weight(int axis, int k, int i) const { return weights[axis][k][i]; }
    REGNET_HD V kept(int axis, int i, V v) const { return dead[axis][i] ? V{} : v; }
    REGNET_HD void read(const T* p, Ints at, V (&row)[width]) const {
        if (straight) {
            int begin[Lanes::size];
            const Ints place = at + offsets[D - 1][0];
            std::memcpy(begin, &place, sizeof begin);
            return read_turned<width>(p, begin, row);
        }
        for (int i = 0; i < taps; ++i) {
            const Ints place = at + offsets[D - 1][i];
            for (int s = 0; s < Lanes::size; ++s) row[i][s] = p[place[s]];
        }
    }
    REGNET_HD void add(T* p, Ints at, int first_axis_tap, const V (&row)[width]) const {
        for (int s = 0; s < Lanes::size; ++s)
            for (int i = 0; i < taps; ++i) {
                const int64_t index = first[D == 1 ? i : first_axis_tap][s];
                if (served[s] && slab.low <= index && index < slab.high) p[at[s] + offsets[D - 1][i][s]] += row[i][s];
            }
    }
};

#else
// The taps of one sample, of an order known to the compiler, so that they live in registers: inside the grid or not
// more than once its size away.  What is not `served`, because it lies farther, or out of view, or is no number, is for
// Folded.
template <int D, int Order, int K, class T>
struct Near {
    using Lanes = OneOf<T>;
    using V = T;
    static constexpr int width = Order + 1;

    bool served = true;
    int offsets[D][width];     // in elements
    T weights[D][K + 1][width];
    bool alive[D][width];      // the tap contributes something

    REGNET_HD Near(const T (&x)[D], const Interp<D, T>& how, const int64_t (&stride)[D]) {
        constexpr T limit = T(1 << 22);  // far from where an int or a float ends
REGNET_UNROLL_ON_GPU(8)
        for (int d = 0; d < D; ++d) served = served && x[d] >= how.view_low[d] && x[d] <= how.view_high[d] && std::fabs(x[d]) < limit;
REGNET_UNROLL_ON_GPU(8)
        for (int d = 0; d < D; ++d) {
            const T shifted = served ? x[d] - T(Order - 1) / 2 : T(0), floor = std::floor(shifted);
REGNET_UNROLL_ON_GPU(8)
            for (int k = 0; k <= K; ++k) bspline_weights<T>(Order, k, shifted - floor, weights[d][k]);
            const int size = int(how.size[d]), first = int(floor);
            const Side before = how.sides[d].before, behind = how.sides[d].behind;
            const bool edge = how.bound[d] == Bound::dst1;
REGNET_UNROLL_ON_GPU(8)
            for (int i = 0; i < width; ++i) {
                const int index = first + i;
                const Side side = index < 0 ? before : index >= size ? behind : Side{1, 0, 1};
                const int folded = index * side.slope + side.offset;
                alive[d][i] = side.sign != 0 && !(edge && (folded == -1 || folded == size));
                served = served && (!alive[d][i] || (folded >= 0 && folded < size));
                offsets[d][i] = alive[d][i] ? folded * int(stride[d]) : 0;
REGNET_UNROLL_ON_GPU(8)
                for (int k = 0; k <= K; ++k) weights[d][k][i] *= T(side.sign);
            }
        }
    }
    REGNET_HD static constexpr int count(int) { return width; }
    // How many taps of an axis the compiler may have in flight: 64 loads at once would take every register.
    REGNET_HD static constexpr int side_by_side(int axis) { return D == 3 && axis == 0 && width > 2 ? 1 : width; }
    REGNET_HD int offset(int axis, int i) const { return pick(offsets[axis], i); }
    REGNET_HD T weight(int axis, int k, int i) const { return pick(weights[axis][k], i); }
    REGNET_HD T kept(int axis, int i, T v) const { return pick(alive[axis], i) ? v : T(0); }
    template <class Value> REGNET_HD static Value pick(const Value (&values)[width], int i) {  // registers have no index
        Value value = values[0];
REGNET_UNROLL_ON_GPU(8)
        for (int j = 1; j < width; ++j)
            if (i >= j) value = values[j];  // at i == j the compiler would read values[i], from memory
        return value;
    }
    REGNET_HD void read(const T* p, int at, T (&row)[width]) const {
REGNET_UNROLL_ON_GPU(8)
        for (int i = 0; i < width; ++i) row[i] = p[at + offsets[D - 1][i]];
    }
    template <class Sum> REGNET_HD void add(Sum* p, int at, int, const T (&row)[width]) const {
REGNET_UNROLL_ON_GPU(8)
        for (int i = 0; i < width; ++i)
            if (alive[D - 1][i]) accumulate(p + at + offsets[D - 1][i], row[i]);
    }
};
#endif  // REGNET_PACKS

// The taps of one sample anywhere, folded into the grid by the bounds, of orders known at run time.  Those that
// contribute nothing are left out, as are those outside the slab.
template <int D, int K, class T>
struct Folded {
    using Lanes = OneOf<T>;
    using V = T;
    static constexpr int width = kMaxTaps;

    int counts[D];
    int64_t offsets[D][width];
    T weights[D][K + 1][width];

    REGNET_HD Folded(const T (&x)[D], const Interp<D, T>& how, const int64_t (&stride)[D], Slab slab = {}) {
        for (int d = 0; d < D; ++d) {
            const int order = how.order[d], taps = taps_of(order);
            const T shift = T(taps - 2) / 2, floor = std::floor(x[d] - shift), t = x[d] - (floor + shift);  // t is exact
            T w[K + 1][width];
            for (int k = 0; k <= K; ++k) kernel_weights<T>(order, k, t, w[k]);
            int n = 0;
            for (int i = 0; i < taps; ++i) {
                const Node node = fold(how.bound[d], int64_t(floor) + i, how.size[d]);
                if (node.sign == 0 || (d == 0 && (node.index < slab.low || node.index >= slab.high))) continue;
                offsets[d][n] = node.index * stride[d];
                for (int k = 0; k <= K; ++k) weights[d][k][n] = node.sign * w[k][i];
                ++n;
            }
            counts[d] = n;
        }
    }
    REGNET_HD int count(int axis) const { return counts[axis]; }
    REGNET_HD static constexpr int side_by_side(int) { return 1; }
    REGNET_HD int64_t offset(int axis, int i) const { return offsets[axis][i]; }
    REGNET_HD T weight(int axis, int k, int i) const { return weights[axis][k][i]; }
    REGNET_HD T kept(int, int, T v) const { return v; }
    REGNET_HD void read(const T* p, int64_t at, T (&row)[width]) const {
        for (int i = 0; i < counts[D - 1]; ++i) row[i] = p[at + offsets[D - 1][i]];
    }
    template <class Sum> REGNET_HD void add(Sum* p, int64_t at, int, const T (&row)[width]) const {
        for (int i = 0; i < counts[D - 1]; ++i) accumulate(p + at + offsets[D - 1][i], row[i]);
    }
};

// acc[code] = the weighted sum over the taps of axes Axis .. D - 1, derived as the digits of `code` say; codes of a
// total degree above K are not computed.  `at`: where the taps of the axes before lie.
template <int K, int D, int Axis, class T, class Taps, class Offset>
REGNET_HD void gather(const Taps& taps, const T* p, Offset at, typename Taps::V* acc) {
    using V = typename Taps::V;
    constexpr int rest = power(K + 1, D - 1 - Axis);
    V row[Taps::width];
    if constexpr (Axis == D - 1) taps.read(p, at, row);
REGNET_UNROLL(16)
    for (int code = 0; code < (K + 1) * rest; ++code) acc[code] = V{};
REGNET_UNROLL_ON_GPU(Taps::side_by_side(Axis))
    for (int i = 0; i < taps.count(Axis); ++i) {
        V part[rest];
        if constexpr (Axis == D - 1) part[0] = row[i];
        else gather<K, D, Axis + 1>(taps, p, at + taps.offset(Axis, i), part);
REGNET_UNROLL(16)
        for (int r = 0; r < rest; ++r) part[r] = taps.kept(Axis, i, part[r]);
REGNET_UNROLL(4)
        for (int k = 0; k <= K; ++k)
REGNET_UNROLL(16)
            for (int r = 0; r < rest; ++r)
                if (k + total_degree<K>(r) <= K) acc[k * rest + r] += taps.weight(Axis, k, i) * part[r];
    }
}
template <int K, int D, class T, class Taps>
REGNET_HD void gather(const Taps& taps, const T* p, typename Taps::V* acc) {
    gather<K, D, 0>(taps, p, decltype(taps.offset(0, 0)){}, acc);
}

// The adjoint: each tap receives the sum over `code` of value[code] times its derived weights.
template <int K, int D, int Axis, class T, class Taps, class Offset>
REGNET_HD void spread(const Taps& taps, T* p, Offset at, int first_axis_tap, const typename Taps::V* value) {
    using V = typename Taps::V;
    constexpr int rest = power(K + 1, D - 1 - Axis);
    V row[Taps::width];
REGNET_UNROLL_ON_GPU(Taps::side_by_side(Axis))
    for (int i = 0; i < taps.count(Axis); ++i) {
        V part[rest];
REGNET_UNROLL(16)
        for (int r = 0; r < rest; ++r) {
            part[r] = V{};
REGNET_UNROLL(4)
            for (int k = 0; k <= K; ++k)
                if (k + total_degree<K>(r) <= K) part[r] += value[k * rest + r] * taps.weight(Axis, k, i);
            part[r] = taps.kept(Axis, i, part[r]);
        }
        if constexpr (Axis == D - 1) row[i] = part[0];
        else spread<K, D, Axis + 1>(taps, p, at + taps.offset(Axis, i), Axis == 0 ? i : first_axis_tap, part);
    }
    if constexpr (Axis == D - 1) taps.add(p, at, first_axis_tap, row);
}
template <int K, int D, class T, class Taps>
REGNET_HD void spread(const Taps& taps, T* p, const typename Taps::V* value) {
    spread<K, D, 0>(taps, p, decltype(taps.offset(0, 0)){}, 0, value);
}
}  // namespace regnet
