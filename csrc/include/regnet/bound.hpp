#pragma once
#include <cstdint>
#include "regnet/macros.hpp"
namespace regnet {

// How a signal continues outside [0, n).  The values are part of the binding: see regnet/ops/options.py.
enum class Bound : int { zero, replicate, dct1, dct2, dst1, dst2, dft };

struct Node { int64_t index; int sign; };  // sign 0: the tap contributes nothing

// The remainder in [0, n).  Most taps lie within one period of the grid, where no division is needed.
REGNET_HD int64_t floor_mod(int64_t i, int64_t n) {
    if (-n <= i && i < n) return i < 0 ? i + n : i;
    i %= n;
    return i < 0 ? i + n : i;
}

REGNET_HD Node fold(Bound bound, int64_t i, int64_t n) {
    if (0 <= i && i < n) return {i, 1};
    switch (bound) {
        case Bound::zero: return {0, 0};
        case Bound::replicate: return {i < 0 ? 0 : n - 1, 1};
        case Bound::dft: return {floor_mod(i, n), 1};
        case Bound::dct1: {
            if (n == 1) return {0, 1};
            const int64_t period = 2 * (n - 1), j = floor_mod(i, period);
            return {j < n ? j : period - j, 1};
        }
        case Bound::dct2: {
            const int64_t period = 2 * n, j = floor_mod(i, period);
            return {j < n ? j : period - 1 - j, 1};
        }
        case Bound::dst1: {
            const int64_t period = 2 * (n + 1), j = floor_mod(i, period);
            if (j == n || j == period - 1) return {0, 0};
            return {j < n ? j : period - 2 - j, j < n ? 1 : -1};
        }
        case Bound::dst2: {
            const int64_t period = 2 * n, j = floor_mod(i, period);
            return {j < n ? j : period - 1 - j, j < n ? 1 : -1};
        }
    }
    return {0, 0};
}

// `fold` for nodes before the grid and behind it, not farther than its size, in numbers that serve many nodes at once:
// index * slope + offset, times sign.  Beyond that the index leaves the grid.  The nodes -1 and n of dst1, to which it
// folds too, contribute nothing.
struct Side { int slope, offset, sign; };
struct Sides { Side before, behind; };

inline Sides sides(Bound bound, int n) {
    switch (bound) {
        case Bound::zero: return {{0, 0, 0}, {0, 0, 0}};
        case Bound::replicate: return {{0, 0, 1}, {0, n - 1, 1}};
        case Bound::dft: return {{1, n, 1}, {1, -n, 1}};
        case Bound::dct1: return {{-1, 0, 1}, {-1, 2 * n - 2, 1}};
        case Bound::dct2: return {{-1, -1, 1}, {-1, 2 * n - 1, 1}};
        case Bound::dst1: return {{-1, -2, -1}, {-1, 2 * n, -1}};
        case Bound::dst2: return {{-1, -1, -1}, {-1, 2 * n - 1, -1}};
    }
    return {};
}
}  // namespace regnet
