#pragma once
// The two families of operators, and the contraction that differentiates both.  A functor is called for a block of
// samples in a row; it serves those that lie inside the grid with straight loops, the others one by one, `folded`.
#include "regnet/coords.hpp"
#include "regnet/stencil.hpp"
namespace regnet {

// out(n, c, d1..dK, i) = d^K/dx_d1..dx_dK of sum_k w_k(x_i) coeff(n, c, k)
template <int D, int Order, int K, class T>
struct Sample {
    static constexpr int tensor = power(D, K), order = Order, degree = K;
    View<D, const T> coeff;  // (N, C, *in)
    Coords<D, T> coords;
    View<D, T> out;          // (N, C * D^K, *out)
    Interp<D, T> how;

    struct Row { typename Coords<D, T>::Row x; const T* source; T* out; };
    REGNET_HD const View<D, T>& samples() const { return out; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        return {coords.row(n, position), coeff.at(n, 0), out.row(n, 0, position)};
    }
    template <class Blocks>
    REGNET_HD void operator()(const Row& row, int64_t j, int s, const Blocks& block) const {
        const Interior<D, Order, K, T> taps{block, s, coeff.stride};
        write(row, j, taps, taps.base());
    }
    template <class Taps>
    REGNET_HD void write(const Row& row, int64_t j, const Taps& taps, int64_t base) const {
        for (int64_t c = 0; c < coeff.channels; ++c) {
            T derived[power(K + 1, D)];
            derivatives(taps, row.source + c * coeff.stride_c + base, derived);
#pragma GCC unroll 32
            for (int i = 0; i < tensor; ++i) row.out[(c * tensor + i) * out.stride_c + j * out.step()] = derived[degree_code<D, K>(i)];
        }
    }
    REGNET_COLD void folded(const Row& row, int64_t j) const {
        T x[D];
        row.x.load(j, x);
        const Place where = place(x, how);
        if (where == Place::view) return write(row, j, Folded<D, Order, K, T>(Stencil<D, Order, K, T>(x, how), how, coeff.stride), 0);
        const T value = where == Place::nowhere ? std::numeric_limits<T>::quiet_NaN() : T(0);
        for (int64_t c = 0; c < out.channels; ++c) row.out[c * out.stride_c + j * out.step()] = value;
    }
};

// out(n, e, i) = sum over c, d1..dK of value(n, c, d1..dK, i) d^(K+1)/dx_d1..dx_dK dx_e of the interpolant:
// the gradient of <value, sample_K(coeff)>, and of <scatter_K(value), coeff>, with respect to the coordinates.
template <int D, int Order, int K, class T>
struct Contract {
    static constexpr int tensor = power(D, K), order = Order, degree = K + 1;
    View<D, const T> coeff;  // (N, C, *in)
    Coords<D, T> coords;
    View<D, const T> value;  // (N, C * D^K, *out)
    View<D, T> out;          // (N, D, *out)
    Interp<D, T> how;

    struct Row { typename Coords<D, T>::Row x; const T* source; const T* value; T* out; };
    REGNET_HD const View<D, T>& samples() const { return out; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        return {coords.row(n, position), coeff.at(n, 0), value.row(n, 0, position), out.row(n, 0, position)};
    }
    template <class Blocks>
    REGNET_HD void operator()(const Row& row, int64_t j, int s, const Blocks& block) const {
        const Interior<D, Order, K + 1, T> taps{block, s, coeff.stride};
        write(row, j, taps, taps.base());
    }
    template <class Taps>
    REGNET_HD void write(const Row& row, int64_t j, const Taps& taps, int64_t base) const {
        T sum[D] = {};
        for (int64_t c = 0; c < coeff.channels; ++c) {
            T derived[power(K + 2, D)];
            derivatives(taps, row.source + c * coeff.stride_c + base, derived);
#pragma GCC unroll 32
            for (int i = 0; i < tensor; ++i) {
                const T v = row.value[(c * tensor + i) * value.stride_c + j * value.step()];
                for (int e = 0; e < D; ++e) sum[e] += v * derived[degree_code<D, K + 1>(i * D + e)];
            }
        }
        for (int e = 0; e < D; ++e) row.out[e * out.stride_c + j * out.step()] = sum[e];
    }
    REGNET_COLD void folded(const Row& row, int64_t j) const {
        T x[D];
        row.x.load(j, x);
        if (place(x, how) == Place::view)
            return write(row, j, Folded<D, Order, K + 1, T>(Stencil<D, Order, K + 1, T>(x, how), how, coeff.stride), 0);
        for (int e = 0; e < D; ++e) row.out[e * out.stride_c + j * out.step()] = 0;
    }
};

// target(n, c, k) += sum over i, d1..dK of value(n, c, d1..dK, i) times the derived weight w_k(x_i): the adjoint
// of Sample.  Only the nodes whose index along the first axis is in [low, high) receive anything.
template <int D, int Order, int K, class T>
struct Scatter {
    static constexpr int tensor = power(D, K), order = Order, degree = K;
    View<D, const T> value;  // (N, C * D^K, *out)
    Coords<D, T> coords;
    View<D, T> target;       // (N, C, *in), zeroed by the caller
    Interp<D, T> how;

    struct Row { typename Coords<D, T>::Row x; const T* value; T* target; int64_t low, high; };
    REGNET_HD const View<D, const T>& samples() const { return value; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D], int64_t low, int64_t high) const {
        return {coords.row(n, position), value.row(n, 0, position), target.at(n, 0), low, high};
    }
    template <class Blocks>
    REGNET_HD void operator()(const Row& row, int64_t j, int s, const Blocks& block) const {
        const int64_t first = block.first[0][s];
        if (first >= row.high || first + Order < row.low) return;
        if (first < row.low || first + Order >= row.high) return folded(row, j);
        const Interior<D, Order, K, T> taps{block, s, target.stride};
        add(row, j, taps, taps.base());
    }
    template <class Taps>
    REGNET_HD void add(const Row& row, int64_t j, const Taps& taps, int64_t base) const {
        for (int64_t c = 0; c < target.channels; ++c) {
            T coded[power(K + 1, D)] = {};
#pragma GCC unroll 32
            for (int i = 0; i < tensor; ++i) coded[degree_code<D, K>(i)] += row.value[(c * tensor + i) * value.stride_c + j * value.step()];
            spread<K, D, 0>(taps, row.target + c * target.stride_c + base, coded);
        }
    }
    REGNET_COLD void folded(const Row& row, int64_t j) const {
        T x[D];
        row.x.load(j, x);
        if (place(x, how) == Place::view)
            add(row, j, Folded<D, Order, K, T>(Stencil<D, Order, K, T>(x, how), how, target.stride, row.low, row.high), 0);
    }
    // The rows of the target's first axis that the sample at j touches, merged into [low, high).
    REGNET_HD void extent(const Row& row, int64_t j, int64_t& low, int64_t& high) const {
        T x[D];
        row.x.load(j, x);
        if (place(x, how) != Place::view) return;
        const int last = taps_of(how.order[0]) - 1;
        const int64_t first = int64_t(std::floor(x[0] - T(last - 1) / 2));
        const bool inside = first >= 0 && first + last < how.size[0];  // then the first and the last tap tell
        for (int i = 0; i <= last; i += inside && last ? last : 1) {
            const Node node = fold(how.bound[0], first + i, how.size[0]);
            if (node.sign == 0) continue;
            low = node.index < low ? node.index : low;
            high = node.index >= high ? node.index + 1 : high;
        }
    }
};

// The samples begin .. end - 1 of a row.
template <int D, class T, class Kernel>
REGNET_HD void run(const Kernel& kernel, const typename Kernel::Row& row, int64_t begin, int64_t end) {
    if constexpr (Kernel::order < 0) {
        for (int64_t j = begin; j < end; ++j) kernel.folded(row, j);
    } else {
        using Blocks = Block<D, Kernel::order, Kernel::degree, T>;
        for (int64_t j = begin; j < end; j += Blocks::size) {
            const int used = end - j < Blocks::size ? int(end - j) : Blocks::size;
            typename Blocks::Pack x[D];
            row.x.template load<Blocks::size>(j, used, x);
            const Blocks block(x, kernel.how);
            for (int s = 0; s < used; ++s) {
                if (block.inside[s]) kernel(row, j + s, s, block);
                else kernel.folded(row, j + s);
            }
        }
    }
}
}  // namespace regnet
