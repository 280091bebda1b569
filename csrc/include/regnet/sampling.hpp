#pragma once
// The two families of operators, and the contraction that differentiates both.  A functor serves some samples of a row
// whose taps it is given; which taps, of one sample or of many, is decided below.
#include "regnet/coords.hpp"
#include "regnet/stencil.hpp"
namespace regnet {

// out(n, c, d1..dK, i) = d^K/dx_d1..dx_dK of sum_k w_k(x_i) coeff(n, c, k)
template <int D, int Order, int K, class T>
struct Sample {
    static constexpr int tensor = power(D, K), order = Order, degree = K;
    View<D, const T> grid;  // coefficients (N, C, *in)
    Coords<D, T> coords;
    View<D, T> out;         // (N, C * D^K, *out)
    Interp<D, T> how;
    T nowhere;              // the value at a NaN coordinate

    struct Row { typename Coords<D, T>::Row x; const T* source; T* out; Slab slab; };
    REGNET_HD const View<D, T>& samples() const { return out; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        return {coords.row(n, position), grid.at(n, 0), out.row(n, 0, position), {}};
    }
    template <class Taps>
    REGNET_HD void serve(const Row& row, int64_t j, int used, const Taps& taps) const {
        for (int64_t c = 0; c < grid.channels; ++c) {
            typename Taps::V derived[power(K + 1, D)];
            gather<K, D>(taps, row.source + c * grid.stride_c, derived);
REGNET_UNROLL(32)
            for (int i = 0; i < tensor; ++i)
                Taps::Lanes::store(row.out + (c * tensor + i) * out.stride_c + j * out.step(), out.step(), used, derived[degree_code<D, K>(i)]);
        }
    }
    REGNET_HD void miss(const Row& row, int64_t j, Place where) const {
        const T value = where == Place::nowhere ? nowhere : T(0);
        for (int64_t c = 0; c < out.channels; ++c) row.out[c * out.stride_c + j * out.step()] = value;
    }
};

// out(n, e, i) = sum over c, d1..dK of value(n, c, d1..dK, i) d^(K+1)/dx_d1..dx_dK dx_e of the interpolant:
// the gradient of <value, sample_K(coeff)>, and of <scatter_K(value), coeff>, with respect to the coordinates.
template <int D, int Order, int K, class T>
struct Contract {
    static constexpr int tensor = power(D, K), order = Order, degree = K + 1;
    View<D, const T> grid;   // coefficients (N, C, *in)
    Coords<D, T> coords;
    View<D, const T> value;  // (N, C * D^K, *out)
    View<D, T> out;          // (N, D, *out)
    Interp<D, T> how;

    struct Row { typename Coords<D, T>::Row x; const T* source; const T* value; T* out; Slab slab; };
    REGNET_HD const View<D, T>& samples() const { return out; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        return {coords.row(n, position), grid.at(n, 0), value.row(n, 0, position), out.row(n, 0, position), {}};
    }
    template <class Taps>
    REGNET_HD void serve(const Row& row, int64_t j, int used, const Taps& taps) const {
        using V = typename Taps::V;
        V sum[D] = {};
        for (int64_t c = 0; c < grid.channels; ++c) {
            V derived[power(K + 2, D)];
            gather<K + 1, D>(taps, row.source + c * grid.stride_c, derived);
REGNET_UNROLL(32)
            for (int i = 0; i < tensor; ++i) {
                const V v = Taps::Lanes::load(row.value + (c * tensor + i) * value.stride_c + j * value.step(), value.step(), used);
REGNET_UNROLL(3)
                for (int e = 0; e < D; ++e) sum[e] += v * derived[degree_code<D, K + 1>(i * D + e)];
            }
        }
REGNET_UNROLL(3)
        for (int e = 0; e < D; ++e) Taps::Lanes::store(row.out + e * out.stride_c + j * out.step(), out.step(), used, sum[e]);
    }
    REGNET_HD void miss(const Row& row, int64_t j, Place) const {
        for (int e = 0; e < D; ++e) row.out[e * out.stride_c + j * out.step()] = 0;
    }
};

// target(n, c, k) += sum over i, d1..dK of value(n, c, d1..dK, i) times the derived weight w_k(x_i): the adjoint
// of Sample.  Only the nodes of the slab receive anything.  Sum: the type of the target.
template <int D, int Order, int K, class T, class Sum = T>
struct Scatter {
    static constexpr int tensor = power(D, K), order = Order, degree = K;
    View<D, const T> value;  // (N, C * D^K, *out)
    Coords<D, T> coords;
    View<D, Sum> grid;       // the target (N, C, *in), zeroed by the caller
    Interp<D, T> how;

    struct Row { typename Coords<D, T>::Row x; const T* value; Sum* target; Slab slab; };
    REGNET_HD const View<D, const T>& samples() const { return value; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D], Slab slab = {}) const {
        return {coords.row(n, position), value.row(n, 0, position), grid.at(n, 0), slab};
    }
    template <class Taps>
    REGNET_HD void serve(const Row& row, int64_t j, int used, const Taps& taps) const {
        using V = typename Taps::V;
        for (int64_t c = 0; c < grid.channels; ++c) {
            V coded[power(K + 1, D)] = {};
REGNET_UNROLL(32)
            for (int i = 0; i < tensor; ++i)
                coded[degree_code<D, K>(i)] += Taps::Lanes::load(row.value + (c * tensor + i) * value.stride_c + j * value.step(), value.step(), used);
            spread<K, D>(taps, row.target + c * grid.stride_c, coded);
        }
    }
    REGNET_HD void miss(const Row&, int64_t, Place) const {}
};

// One sample, anywhere.
template <int D, class T, class Kernel>
REGNET_APART void run_one(const Kernel& kernel, const typename Kernel::Row& row, int64_t j) {
    T x[D];
    row.x.template load<OneOf<T>>(j, 1, x);
    const Place where = place(x, kernel.how);
    if (where == Place::view) kernel.serve(row, j, 1, Folded<D, Kernel::degree, T>(x, kernel.how, kernel.grid.stride, row.slab));
    else kernel.miss(row, j, where);
}
#ifdef REGNET_PACKS
template <int D, class T, class Kernel>
REGNET_APART void run_border(const Kernel& kernel, const typename Kernel::Row& row, int64_t j, int used, const typename PackOf<T>::V (&x)[D]) {
    const Bordered<D, Kernel::order, Kernel::degree, T> taps(x, used, kernel.how, kernel.grid.stride, row.slab);
    if (PackOf<T>::any(taps.served)) kernel.serve(row, j, used, taps);
    for (int s = 0; s < used; ++s)
        if (!taps.served[s]) run_one<D, T>(kernel, row, j + s);
}
// The samples begin .. end - 1 of a row.
template <int D, class T, class Kernel>
REGNET_HD void run(const Kernel& kernel, const typename Kernel::Row& row, int64_t begin, int64_t end) {
    if constexpr (Kernel::order < 0) {
        for (int64_t j = begin; j < end; ++j) run_one<D, T>(kernel, row, j);
    } else {
        using Lanes = PackOf<T>;
        for (int64_t j = begin; j < end; j += Lanes::size) {
            const int used = end - j < Lanes::size ? int(end - j) : Lanes::size;
            typename Lanes::V x[D];
            row.x.template load<Lanes>(j, used, x);
            const Interior<D, Kernel::order, Kernel::degree, T> taps(x, used, kernel.how, kernel.grid.stride, row.slab);
            if (taps.all) kernel.serve(row, j, used, taps);
            else run_border<D, T>(kernel, row, j, used, x);
        }
    }
}

// The rows of a target's first axis that the samples begin .. end - 1 of a row can touch; rather too many than too few.
template <int D, class T, class Kernel>
REGNET_HD Slab extent(const Kernel& kernel, const typename Kernel::Row& row, int64_t begin, int64_t end) {
    using Lanes = PackOf<T>;
    constexpr T infinity = std::numeric_limits<T>::infinity();
    typename Lanes::V least = typename Lanes::V{} + infinity, most = -least;
    for (int64_t j = begin; j < end; j += Lanes::size) {
        const int used = end - j < Lanes::size ? int(end - j) : Lanes::size;
        typename Lanes::V x[D];
        row.x.template load<Lanes>(j, used, x);
        least = x[0] < least ? x[0] : least;  // a NaN changes nothing
        most = x[0] > most ? x[0] : most;
    }
    T low = infinity, high = -infinity;
    for (int s = 0; s < Lanes::size; ++s) {
        low = least[s] < low ? least[s] : low;
        high = most[s] > high ? most[s] : high;
    }
    if (!(low <= high)) return {0, 0};
    const int64_t rows = kernel.how.size[0];
    const int taps = taps_of(kernel.how.order[0]);
    const T first = std::floor(low - T(taps - 2) / 2), last = std::floor(high - T(taps - 2) / 2) + T(taps - 1);
    const bool repeats = kernel.how.bound[0] == Bound::dft;
    if (first >= 0 && last < T(rows)) return {int64_t(first), int64_t(last) + 1};
    // What lies outside is folded back, not farther from the end than it was, but to the other end where the signal repeats.
    if (!repeats && first > -T(rows) && last < T(rows)) return {0, std::max(int64_t(last), -int64_t(first)) + 1};
    if (!repeats && first >= 0 && last < T(2 * rows - 1)) return {std::min(int64_t(first), 2 * rows - 2 - int64_t(last)), rows};
    return {0, rows};
}
#else
// The samples begin .. end - 1 of a row, one by one.
template <int D, class T, class Kernel>
REGNET_HD void run(const Kernel& kernel, const typename Kernel::Row& row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
        if constexpr (Kernel::order >= 0) {
            T x[D];
            row.x.template load<OneOf<T>>(j, 1, x);
            const Near<D, Kernel::order, Kernel::degree, T> taps(x, kernel.how, kernel.grid.stride);
            if (taps.served) {
                kernel.serve(row, j, 1, taps);
                continue;
            }
        }
        const typename Kernel::Row apart = row;  // a copy, so that the row itself stays in registers
        run_one<D, T>(kernel, apart, j);
    }
}
#endif  // REGNET_PACKS
}  // namespace regnet
