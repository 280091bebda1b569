#pragma once
// Labels are not averaged: the nodes around a sample vote, each with its weight.
#include "regnet/coords.hpp"
#include "regnet/stencil.hpp"
namespace regnet {

// out(n, 0, i) = the label whose nodes around x_i weigh most together, of equals the smaller; out of view, the
// background.  L is any type of the labels' width; numbers are compared as `sign` says.
template <int D, int Order, class L, class T>
struct Vote {
    static constexpr int order = -1;  // samples are served one by one
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
    struct Ballot {
        int count = 0;
        L label[power(Order + 1, D)];
        T weight[power(Order + 1, D)];

        REGNET_HD void add(L one, T w) {
            int i = 0;
            while (i < count && label[i] != one) ++i;
            if (i == count) { label[count] = one; weight[count++] = 0; }
            weight[i] += w;
        }
    };
    template <int Axis>
    REGNET_HD void collect(const Folded<D, Order, 0, T>& taps, const L* p, T weight, Ballot& ballot) const {
        if constexpr (Axis == D) {
            ballot.add(*p, weight);
        } else {
            for (int i = 0; i < taps.count(Axis); ++i)
                collect<Axis + 1>(taps, p + taps.offset(Axis, i), weight * taps.weight(Axis, 0, i), ballot);
        }
    }
    REGNET_HD L winner(const Ballot& ballot) const {
        int best = 0;
        for (int i = 1; i < ballot.count; ++i) {
            const bool smaller = L(ballot.label[i] ^ sign) < L(ballot.label[best] ^ sign);
            if (ballot.weight[i] > ballot.weight[best] || (ballot.weight[i] == ballot.weight[best] && smaller)) best = i;
        }
        return ballot.label[best];
    }
    REGNET_HD void folded(const Row& row, int64_t j) const {
        T x[D];
        row.x.load(j, x);
        L& result = row.out[j * out.step()];
        if (place(x, how) != Place::view) { result = background; return; }
        Ballot ballot;
        collect<0>(Folded<D, Order, 0, T>(Stencil<D, Order, 0, T>(x, how), how, labels.stride), row.source, T(1), ballot);
        result = winner(ballot);
    }
};
}  // namespace regnet
