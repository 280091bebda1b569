#pragma once
// Filters along lines: the B-spline prefilter, exact for every bound, and the box sum.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include "regnet/bound.hpp"
#include "regnet/spline.hpp"
namespace regnet {
#ifndef __CUDACC_RTC__  // NVRTC compiles what a GPU runs, and has no vectors

// Weights of an integer node: the centred B-spline of this order at 0, 1, 2, ... (index = distance).
inline std::vector<double> spline_at_integers(int order) {
    double w[kMaxTaps];
    const double shifted = -(order - 1) / 2.0, first = std::floor(shifted);
    bspline_weights<double>(order, 0, shifted - first, w);
    std::vector<double> at(order / 2 + 1);
    for (int k = 0; k <= order / 2; ++k) at[k] = w[k - int(first)];
    return at;
}

// Roots inside the unit circle of the polynomial whose coefficients are the spline at the integers, by
// Newton's method on the deflated function: no table of poles.
inline std::vector<double> spline_poles(int order) {
    const std::vector<double> b = spline_at_integers(order);
    const int half = order / 2;
    // With y = z + 1/z, sum_k b_k (z^k + z^-k) is a polynomial of degree `half` in y, with real roots below -2.
    std::vector<double> poly(half + 1, 0.0), previous{2.0}, current{0.0, 1.0};  // z^k + z^-k as polynomials in y
    poly[0] = b[0];
    for (int k = 1; k <= half; ++k) {
        for (size_t i = 0; i < current.size(); ++i) poly[i] += b[k] * current[i];
        std::vector<double> next(current.size() + 1, 0.0);
        for (size_t i = 0; i < current.size(); ++i) next[i + 1] += current[i];
        for (size_t i = 0; i < previous.size(); ++i) next[i] -= previous[i];
        previous = current;
        current = next;
    }
    std::vector<double> poles, roots;
    for (int r = 0; r < half; ++r) {
        double y = -2.0;  // right of every root: the deflated iteration walks left to the next one
        for (int i = 0; i < 100; ++i) {
            double value = 0, slope = 0;
            for (int k = half; k >= 0; --k) { slope = slope * y + value; value = value * y + poly[k]; }
            double newton = slope / value;
            for (double root : roots) newton -= 1 / (y - root);
            const double step = 1 / newton;
            y -= step;
            if (!(std::fabs(step) > 1e-16 * std::fabs(y))) break;
        }
        roots.push_back(y);
        poles.push_back(2 / (y - std::sqrt(y * y - 4)));  // the root of z + 1/z = y inside the circle
    }
    return poles;
}
#endif

// One pole of the recursive filter, as sums over the ends of a line of n samples:
// start = sum head[k] s[k] + tail[k] s[n-1-k];  finish = last c[n-1] + before_last c[n-2] + closing sum tail[k] c[k].
template <class T>
struct Pole {
    static constexpr int most = 75;  // powers below 1e-20 cannot be seen in the sums: these, of the largest pole (order 7)
    T z, last, before_last = 0, closing = 0;
    int heads, tails = 0;
    T head[most] = {}, tail[most] = {};

    Pole() = default;
#ifndef __CUDACC_RTC__
    Pole(double pole, Bound bound, int64_t n) : z(T(pole)) {
        const double z = pole;
        const auto p = [&](int64_t k) { return std::pow(z, double(k)); };
        heads = int(std::min({n, int64_t(most), 1 + int64_t(std::ceil(std::log(1e-20) / std::log(std::fabs(z))))}));
        switch (bound) {
            case Bound::dft:
                for (int k = 0; k + 1 < n && k < heads; ++k) tail[tails++] = T(p(k + 1) / (1 - p(n)));
                heads = 1;
                head[0] = T(1 / (1 - p(n)));
                last = T(-z / (1 - p(n)));
                closing = T(-z);
                break;
            case Bound::dct1:
                tails = 1;
                tail[0] = T(p(n - 1) / (1 - p(2 * n - 2)));
                head[0] = T(1 / (1 - p(2 * n - 2)));
                for (int k = 1; k + 1 < n && k < heads; ++k) head[k] = T((p(k) + p(2 * n - 2 - k)) / (1 - p(2 * n - 2)));
                last = T(z / (z * z - 1));
                before_last = T(z * z / (z * z - 1));
                break;
            case Bound::dst1:
                head[0] = T((1 - z * z) / (1 - p(2 * n + 2)));
                for (int k = 1; k < heads; ++k) head[k] = T((p(2 * n + 2 - k) - p(k + 2)) / (1 - p(2 * n + 2)));
                last = T(-z);
                break;
            default: {  // dct2 (+) and dst2 (-)
                const double sign = bound == Bound::dst2 ? -1 : 1;
                for (int k = 0; k < heads; ++k)
                    head[k] = T((k == 0) + sign * z * (p(k) + sign * p(2 * n - 1 - k)) / (1 - p(2 * n)));
                last = T(sign * z / (z - sign));
            }
        }
    }
#endif
};

// The banded matrix of a B-spline at the integers, and its LU factors.
struct Band {
    int64_t n;
    int half = 0;  // of the band: the diagonal has this many beside it; 0: there is no such matrix
    Bound bound;
    bool adjoint;
    double spline[kMaxOrder / 2 + 1];  // at 0, 1, 2, ...

    REGNET_HD int width() const { return 2 * half + 1; }
    // Without pivoting: the matrix is well conditioned (Unser et al., 1993).  `a` is where to work; n * width numbers in
    // either, of row i the columns i - half .. i + half; on the diagonal 1 / U.
    template <class T>
    REGNET_HD void factorise(double* a, T* lu) const {
        const int w = width();
        for (int64_t i = 0; i < n * w; ++i) a[i] = 0;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = i - half; k <= i + half; ++k) {
                const Node node = fold(bound, k, n);
                if (!node.sign) continue;
                const int64_t row = adjoint ? node.index : i, column = adjoint ? i : node.index;
                a[row * w + half + column - row] += node.sign * spline[k < i ? i - k : k - i];
            }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t r = i + 1; r <= i + half && r < n; ++r) {
                double& factor = a[r * w + half + i - r];
                factor /= a[i * w + half];
                for (int64_t k = i + 1; k <= i + half && k < n; ++k) a[r * w + half + k - r] -= factor * a[i * w + half + k - i];
            }
        for (int64_t i = 0; i < n * w; ++i) lu[i] = T(i % w == half ? 1 / a[i] : a[i]);
    }
};

// c such that sum_k c[k] beta(i - k) = s[i], the line continued by its bound; or the adjoint of that map.  Plain data,
// so that it travels to a GPU by value.
template <class T>
struct Filter {
    int64_t n;
    T gain = 1, ends = 1;  // ends: dct1 is diagonally similar to its adjoint, by the weights of its two end samples
    int poles = 0;
    Pole<T> pole[kMaxOrder / 2];
    Band band;             // where no recursion is exact

#ifndef __CUDACC_RTC__
    Filter(int order, Bound bound, int64_t length, bool adjoint) : n(length) {
        const std::vector<double> b = spline_at_integers(order);
        if (n == 1) {  // the 1 x 1 matrix of the definition
            double sum = 0;
            for (int k = -(order / 2); k <= order / 2; ++k) sum += b[std::abs(k)] * fold(bound, k, 1).sign;
            gain = T(1 / sum);
            return;
        }
        if (bound == Bound::zero || bound == Bound::replicate) {
            if (order > 3) {
                band = {n, order / 2, bound, adjoint, {}};
                std::copy(b.begin(), b.end(), band.spline);
                return;
            }
            bound = bound == Bound::zero ? Bound::dst1 : Bound::dct2;  // the same matrix where taps reach one node out
        }
        double product = 1;
        for (double z : spline_poles(order)) {
            product *= (1 - z) * (1 - 1 / z);
            pole[poles++] = {z, bound, n};
        }
        gain = T(product);
        if (bound == Bound::dct1 && adjoint) ends = 2;
    }
#endif

    // In place on W lines side by side, whose neighbours lie `step` apart.  lu: the factors of the band, if there is one.
    template <int W>
    REGNET_HD void apply(T* c, int64_t step, const T* lu) const {
        for (int64_t k = 0; k < n; ++k)
            for (int w = 0; w < W; ++w) c[k * step + w] *= gain;
        if (ends != 1) scale_ends<W>(c, step, ends);
        for (int i = 0; i < poles; ++i) recurse<W>(c, step, pole[i]);
        if (ends != 1) scale_ends<W>(c, step, 1 / ends);
        if (band.half) solve<W>(c, step, lu);
    }
    template <int W>
    REGNET_HD void scale_ends(T* c, int64_t step, T s) const {
        for (int w = 0; w < W; ++w) { c[w] *= s; c[(n - 1) * step + w] *= s; }
    }
    template <int W>
    REGNET_HD static void add_row(T* to, T factor, const T* row) {
        for (int w = 0; w < W; ++w) to[w] += factor * row[w];
    }
    template <int W>
    REGNET_HD void recurse(T* c, int64_t step, const Pole<T>& pole) const {
        T carried[W] = {}, closing[W] = {};  // from node to node, in registers
        for (int k = 0; k < pole.heads; ++k) add_row<W>(carried, pole.head[k], c + k * step);
        for (int k = 0; k < pole.tails; ++k) add_row<W>(carried, pole.tail[k], c + (n - 1 - k) * step);
        for (int w = 0; w < W; ++w) c[w] = carried[w];
        for (int64_t k = 1; k < n; ++k)
            for (int w = 0; w < W; ++w) c[k * step + w] = carried[w] = c[k * step + w] + pole.z * carried[w];
        if (pole.closing != 0) for (int k = 0; k < pole.tails; ++k) add_row<W>(closing, pole.tail[k], c + k * step);
        for (int w = 0; w < W; ++w) {
            const T last = pole.last * carried[w] + pole.before_last * c[(n - 2) * step + w] + pole.closing * closing[w];
            c[(n - 1) * step + w] = carried[w] = last;
        }
        for (int64_t k = n - 2; k >= 0; --k)
            for (int w = 0; w < W; ++w) c[k * step + w] = carried[w] = pole.z * (carried[w] - c[k * step + w]);
    }
    template <int W>
    REGNET_HD void solve(T* c, int64_t step, const T* lu) const {
        const int half = band.half;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = i < half ? 0 : i - half; k < i; ++k) add_row<W>(c + i * step, -lu[i * band.width() + half + k - i], c + k * step);
        for (int64_t i = n - 1; i >= 0; --i) {
            for (int64_t k = i + 1; k <= i + half && k < n; ++k) add_row<W>(c + i * step, -lu[i * band.width() + half + k - i], c + k * step);
            for (int w = 0; w < W; ++w) c[i * step + w] *= lu[i * band.width() + half];
        }
    }
};

#ifdef REGNET_PACKS
template <int W, class T>
struct Prefilter {
    static constexpr bool needs_scratch = false;
    Filter<T> filter;
    std::vector<T> lu;

    Prefilter(int order, Bound bound, int64_t n, bool adjoint) : filter(order, bound, n, adjoint) {
        const Band& band = filter.band;
        if (band.half == 0) return;
        std::vector<double> room(n * band.width());
        lu.resize(room.size());
        band.factorise(room.data(), lu.data());
    }
    void operator()(T* c, T*) const { filter.template apply<W>(c, W, lu.data()); }
};

// Sums over a centred window, zero outside, by a running sum kept in double so that it does not drift.
template <int W, class T>
struct BoxSum {
    static constexpr bool needs_scratch = true;
    int64_t n, half;

    void operator()(T* c, T* scratch) const {
        std::copy_n(c, n * W, scratch);
        double sum[W] = {};
        for (int64_t k = 0; k < std::min(half, n); ++k) for (int w = 0; w < W; ++w) sum[w] += scratch[k * W + w];
        for (int64_t k = 0; k < n; ++k) {
            if (k + half < n) for (int w = 0; w < W; ++w) sum[w] += scratch[(k + half) * W + w];
            if (k - half > 0) for (int w = 0; w < W; ++w) sum[w] -= scratch[(k - half - 1) * W + w];
            for (int w = 0; w < W; ++w) c[k * W + w] = T(sum[w]);
        }
    }
};
#endif  // REGNET_PACKS
}  // namespace regnet
