#pragma once
// Labels are not averaged: the nodes around a sample vote, each with its weight.
#include <cmath>
#include "regnet/coords.hpp"
#include "regnet/stencil.hpp"
namespace regnet {

// out(n, 0, i) = the label whose nodes around x_i weigh most together, of equals the smaller; out of view, the
// background.  L is any type of the labels' width; numbers are compared as `sign` says.
template <int D, int Order, class L, class T>
struct Vote {
    static constexpr int taps = Order + 1;
    View<D, const L> labels;  // (N, 1, *in)
    Coords<D, T> coords;
    View<D, L> out;           // (N, 1, *out)
    Interp<D, T> how;
    L background, sign;       // sign: the bit that is the sign where the labels have one, else 0

    struct Row { typename Coords<D, T>::Row x; const L* source; L* out; };
    REGNET_HD const View<D, L>& samples() const { return out; }
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        return {coords.row(n, position), labels.at(n, 0), out.row(n, 0, position)};
    }
    REGNET_HD void serve(const Row& row, int64_t j) const {
        T x[D];
        row.x.template load<OneOf<T>>(j, 1, x);
        row.out[j * out.step()] = place(x, how) == Place::view ? elected(row.source, x) : background;
    }
    REGNET_HD L elected(const L* source, const T (&x)[D]) const {
        int64_t offset[D][taps];
        T weight[D][taps];
        for (int d = 0; d < D; ++d) {
            const T shifted = x[d] - T(taps - 2) / 2, floor = std::floor(shifted);
            bspline_weights<T>(Order, 0, shifted - floor, weight[d]);
            for (int i = 0; i < taps; ++i)
                offset[d][i] = fold(Bound::replicate, int64_t(floor) + i, labels.size[d]).index * labels.stride[d];
        }
        Ballot ballot;
        collect<0>(offset, weight, source, T(1), ballot);
        return ballot.winner(sign);
    }
    struct Ballot {
        int count = 0;
        L label[power(taps, D)];
        T weight[power(taps, D)];

        REGNET_HD void add(L one, T w) {
            int i = 0;
            while (i < count && label[i] != one) ++i;
            if (i == count) { label[count] = one; weight[count++] = 0; }
            weight[i] += w;
        }
        REGNET_HD L winner(L sign) const {
            int best = 0;
            for (int i = 1; i < count; ++i) {
                const bool smaller = L(label[i] ^ sign) < L(label[best] ^ sign);
                if (weight[i] > weight[best] || (weight[i] == weight[best] && smaller)) best = i;
            }
            return label[best];
        }
    };
    template <int Axis>
    REGNET_HD static void collect(const int64_t (&offset)[D][taps], const T (&weight)[D][taps], const L* p, T w, Ballot& ballot) {
        if constexpr (Axis == D) ballot.add(*p, w);
        else for (int i = 0; i < taps; ++i) collect<Axis + 1>(offset, weight, p + offset[Axis][i], w * weight[Axis][i], ballot);
    }
};

// Votes are counted one by one.
template <int D, class T, int Order, class L>
REGNET_HD void run(const Vote<D, Order, L, T>& kernel, const typename Vote<D, Order, L, T>::Row& row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) kernel.serve(row, j);
}
}  // namespace regnet
