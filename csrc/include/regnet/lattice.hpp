#pragma once
// A spline sampled on an axis-aligned lattice is separable: one sparse matrix an axis, applied to every line along it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#include "regnet/bound.hpp"
#include "regnet/ops.hpp"
#include "regnet/pack.hpp"
#include "regnet/spline.hpp"
namespace regnet {

// Which nodes a sample of a ramp sees, and how much of each; -1 in place of a node: the tap contributes nothing.
struct Ruler {
    int order;
    Bound bound;
    Ramp at;
    int64_t nodes;

    REGNET_HD void taps(int64_t p, int64_t (&node)[kMaxTaps], double (&weight)[kMaxTaps]) const {
        const double x = (at.scale * (double(p) / at.spacing) + at.offset) / at.divisor;
        const double shifted = x - (order - 1) / 2.0, first = std::floor(shifted);
        bspline_weights<double>(order, 0, shifted - first, weight);
        for (int i = 0; i <= order; ++i) {
            const Node folded = fold(bound, int64_t(first) + i, nodes);
            node[i] = folded.sign == 0 || weight[i] == 0 ? -1 : folded.index;
            weight[i] *= folded.sign;
        }
    }
};

#ifdef REGNET_PACKS
// The matrix by rows.  The adjoint is the transposed one, so both directions write each number once, as a sum in an
// order of its own: the same bits for any number of threads.
template <class T>
struct Rows {
    struct Tap { int64_t index; T weight; };
    std::vector<Tap> taps;
    std::vector<int64_t> start;  // row r is taps start[r] .. start[r + 1] - 1

    Rows(int order, Bound bound, Ramp at, int64_t nodes, int64_t samples, bool adjoint) : start((adjoint ? nodes : samples) + 1) {
        const Ruler ruler{order, bound, at, nodes};
        const auto each = [&](auto&& tap) {
            int64_t node[kMaxTaps];
            double weight[kMaxTaps];
            for (int64_t p = 0; p < samples; ++p) {
                ruler.taps(p, node, weight);
                for (int i = 0; i <= order; ++i)
                    if (node[i] >= 0) adjoint ? tap(node[i], p, weight[i]) : tap(p, node[i], weight[i]);
            }
        };
        each([&](int64_t row, int64_t, double) { ++start[row + 1]; });
        for (size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
        taps.resize(start.back());
        std::vector<int64_t> next = start;
        each([&](int64_t row, int64_t column, double weight) { taps[next[row]++] = {column, T(weight)}; });
    }
    int64_t count() const { return int64_t(start.size()) - 1; }

    // to[i] = row r times line i, for U packs V of neighbouring lines; neighbours along a line lie `step` apart.
    template <class V, int U, bool past_caches = false>
    REGNET_HD void apply(int64_t r, const T* from, int64_t step, T* to) const {
        constexpr int lanes = sizeof(V) / sizeof(T);
        V sum[U] = {};
        for (const Tap *tap = taps.data() + start[r], *end = taps.data() + start[r + 1]; tap != end; ++tap) {
            const T* source = from + tap->index * step;
#pragma GCC unroll 4
            for (int u = 0; u < U; ++u) {  // pack by pack: an array copied whole would live in memory
                V value;
                std::memcpy(&value, source + u * lanes, sizeof value);
                sum[u] += tap->weight * value;
            }
        }
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
            if constexpr (past_caches) store_past_caches(to + u * lanes, sum[u]);
            else std::memcpy(to + u * lanes, &sum[u], sizeof sum[u]);
        }
    }
};

template <class T> using Pack = typename LaneOf<T, 32 / int(sizeof(T))>::type;

// Bytes; a result above this has left the caches before the next pass reads its beginning.
constexpr int64_t kCached = 8 << 20;

// (outer, n, inner) -> (outer, m, inner), contiguous, every line taken as it lies: fast for lines side by side.
template <class T>
void for_rows(Cpu cpu, const Rows<T>& rows, const T* from, T* to, int64_t outer, int64_t n, int64_t inner) {
    constexpr int64_t width = 4096, span = 16, lanes = 32 / sizeof(T);  // pieces of some rows, so that what they share stays in the cache
    const int64_t m = rows.count(), pieces = (inner + width - 1) / width, spans = (m + span - 1) / span;
    const int team = cpu.team(outer * std::max(n, m) * inner);
    const bool large = outer * m * inner * int64_t(sizeof(T)) > kCached && (uintptr_t(to) | uintptr_t(inner * sizeof(T))) % 32 == 0;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t unit = 0; unit < outer * pieces * spans; ++unit) {
        const int64_t first = unit % spans * span, piece = unit / spans % pieces, o = unit / spans / pieces;
        const int64_t end = std::min(inner, (piece + 1) * width);
        const T* source = from + o * n * inner;
        for (int64_t r = first; r < std::min(first + span, m); ++r) {
            T* target = to + (o * m + r) * inner;
            int64_t i = piece * width;
            if (large) for (; i + 4 * lanes <= end; i += 4 * lanes) rows.template apply<Pack<T>, 4, true>(r, source + i, inner, target + i);
            for (; i + 4 * lanes <= end; i += 4 * lanes) rows.template apply<Pack<T>, 4>(r, source + i, inner, target + i);
            for (; i + lanes <= end; i += lanes) rows.template apply<Pack<T>, 1>(r, source + i, inner, target + i);
            for (; i < end; ++i) rows.template apply<T, 1>(r, source + i, inner, target + i);
        }
        if (large) fence_past_caches();
    }
}

// The same by bundles of lines, transposed so that they lie side by side.
template <class T>
void for_bundles(Cpu cpu, const Rows<T>& rows, const T* from, T* to, int64_t outer, int64_t n, int64_t inner) {
    constexpr int64_t W = 64 / sizeof(T);
    const int64_t m = rows.count(), lines = outer * inner;
    const int team = cpu.team(lines * std::max(n, m));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        std::vector<T> source(n * W), target(m * W);
#pragma omp for schedule(static)
        for (int64_t first = 0; first < lines; first += W) {
            const int64_t used = std::min(W, lines - first);
            for (int64_t w = 0; w < used; ++w) {
                const T* line = from + (first + w) / inner * n * inner + (first + w) % inner;
                for (int64_t k = 0; k < n; ++k) source[k * W + w] = line[k * inner];
            }
            for (int64_t r = 0; r < m; ++r) rows.template apply<Pack<T>, 2>(r, source.data(), W, &target[r * W]);
            for (int64_t w = 0; w < used; ++w) {
                T* line = to + (first + w) / inner * m * inner + (first + w) % inner;
                for (int64_t r = 0; r < m; ++r) line[r * inner] = target[r * W + w];
            }
        }
    }
}
#endif  // REGNET_PACKS
}  // namespace regnet
