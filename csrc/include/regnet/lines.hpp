#pragma once
// Filters along lines: the B-spline prefilter, exact for every bound, and the box sum.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include "regnet/bound.hpp"
#include "regnet/spline.hpp"
namespace regnet {

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

// One pole of the recursive filter, as sums over the ends of a line of `length` samples:
// start = sum head[k] s[k] + tail[k] s[n-1-k];  finish = last c[n-1] + before_last c[n-2] + sum closing[k] c[k].
struct Pole {
    double z, last, before_last = 0;
    std::vector<double> head, tail, closing;

    Pole(double pole, Bound bound, int64_t n) : z(pole) {
        // Powers below 1e-20 cannot be seen in the sums.
        const int64_t seen = std::min<int64_t>(n, 1 + int64_t(std::ceil(std::log(1e-20) / std::log(std::fabs(z)))));
        const auto p = [&](int64_t k) { return std::pow(z, double(k)); };
        head.assign(seen, 0.0);
        switch (bound) {
            case Bound::dft:
                tail.assign(seen, 0.0);
                closing.assign(seen, 0.0);
                head[0] = 1 / (1 - p(n));
                for (int64_t k = 0; k + 1 < n && k < seen; ++k) {
                    tail[k] = p(k + 1) / (1 - p(n));
                    closing[k] = -p(k + 2) / (1 - p(n));
                }
                last = -z / (1 - p(n));
                break;
            case Bound::dct1:
                tail.assign(1, p(n - 1) / (1 - p(2 * n - 2)));
                head[0] = 1 / (1 - p(2 * n - 2));
                for (int64_t k = 1; k + 1 < n && k < seen; ++k) head[k] = (p(k) + p(2 * n - 2 - k)) / (1 - p(2 * n - 2));
                last = z / (z * z - 1);
                before_last = z * last;
                break;
            case Bound::dst1:
                head[0] = (1 - z * z) / (1 - p(2 * n + 2));
                for (int64_t k = 1; k < seen; ++k) head[k] = (p(2 * n + 2 - k) - p(k + 2)) / (1 - p(2 * n + 2));
                last = -z;
                break;
            default: {  // dct2 (+) and dst2 (-)
                const double sign = bound == Bound::dst2 ? -1 : 1;
                for (int64_t k = 0; k < seen; ++k) head[k] = sign * z * (p(k) + sign * p(2 * n - 1 - k)) / (1 - p(2 * n));
                head[0] += 1;
                last = sign * z / (z - sign);
            }
        }
    }
};

// c such that sum_k c[k] beta(i - k) = s[i], the line continued by its bound; or the adjoint of that map.
template <int W, class T>
struct Prefilter {
    static constexpr bool needs_scratch = false;
    int64_t n;
    bool adjoint;
    double gain = 1, ends = 1;  // ends: dct1 is diagonally similar to its adjoint, by the weights of its two end samples
    std::vector<Pole> poles;
    std::vector<T> band;        // LU factors, (n, 2 half + 1), where no recursion is exact
    int half = 0;

    Prefilter(int order, Bound bound, int64_t length, bool transposed) : n(length), adjoint(transposed) {
        const std::vector<double> b = spline_at_integers(order);
        if (n == 1) {  // the 1 x 1 matrix of the definition
            double sum = 0;
            for (int k = -(order / 2); k <= order / 2; ++k) sum += b[std::abs(k)] * unit(bound, k);
            gain = 1 / sum;
            return;
        }
        if (bound == Bound::zero || bound == Bound::replicate) {
            if (order > 3) { factorise(b, order / 2, bound); return; }
            bound = bound == Bound::zero ? Bound::dst1 : Bound::dct2;  // the same matrix where taps reach one node out
        }
        for (double z : spline_poles(order)) {
            gain *= (1 - z) * (1 - 1 / z);
            poles.emplace_back(z, bound, n);
        }
        if (bound == Bound::dct1 && adjoint) ends = 2;
    }
    static int unit(Bound bound, int64_t i) { return fold(bound, i, 1).sign; }

    // Banded LU without pivoting: the matrix of a B-spline is well conditioned (Unser et al., 1993).
    void factorise(const std::vector<double>& b, int reach, Bound bound) {
        half = reach;
        const int width = 2 * half + 1;
        std::vector<double> a(n * width, 0.0);  // a[i][half + k - i]
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = i - half; k <= i + half; ++k) {
                const Node node = fold(bound, k, n);
                const double w = node.sign * b[std::abs(k - i)];
                if (!node.sign) continue;
                const int64_t row = adjoint ? node.index : i, column = adjoint ? i : node.index;
                a[row * width + half + column - row] += w;
            }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t r = i + 1; r <= std::min(i + half, n - 1); ++r) {
                double& factor = a[r * width + half + i - r];
                factor /= a[i * width + half];
                for (int64_t k = i + 1; k <= std::min(i + half, n - 1); ++k)
                    a[r * width + half + k - r] -= factor * a[i * width + half + k - i];
            }
        band.assign(a.begin(), a.end());
        for (int64_t i = 0; i < n; ++i) band[i * width + half] = T(1 / a[i * width + half]);
    }

    void operator()(T* c, T*) const {
        for (int64_t i = 0; i < n * W; ++i) c[i] *= T(gain);
        if (ends != 1) scale_ends(c, T(ends));
        for (const Pole& pole : poles) recurse(c, pole);
        if (ends != 1) scale_ends(c, T(1 / ends));
        if (!band.empty()) solve(c);
    }
    void scale_ends(T* c, T s) const {
        for (int w = 0; w < W; ++w) { c[w] *= s; c[(n - 1) * W + w] *= s; }
    }
    static void add_row(T* to, T factor, const T* row) {
        for (int w = 0; w < W; ++w) to[w] += factor * row[w];
    }
    void recurse(T* c, const Pole& pole) const {
        const T z = T(pole.z);
        T end[W] = {};
        for (size_t k = 0; k < pole.head.size(); ++k) add_row(end, T(pole.head[k]), c + k * W);
        for (size_t k = 0; k < pole.tail.size(); ++k) add_row(end, T(pole.tail[k]), c + (n - 1 - k) * W);
        std::copy_n(end, W, c);
        for (int64_t k = 1; k < n; ++k) add_row(c + k * W, z, c + (k - 1) * W);
        std::fill_n(end, W, T(0));
        add_row(end, T(pole.last), c + (n - 1) * W);
        add_row(end, T(pole.before_last), c + (n - 2) * W);
        for (size_t k = 0; k < pole.closing.size(); ++k) add_row(end, T(pole.closing[k]), c + k * W);
        std::copy_n(end, W, c + (n - 1) * W);
        for (int64_t k = n - 2; k >= 0; --k)
            for (int w = 0; w < W; ++w) c[k * W + w] = z * (c[(k + 1) * W + w] - c[k * W + w]);
    }
    void solve(T* c) const {
        const int width = 2 * half + 1;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = std::max<int64_t>(0, i - half); k < i; ++k) add_row(c + i * W, -band[i * width + half + k - i], c + k * W);
        for (int64_t i = n - 1; i >= 0; --i) {
            for (int64_t k = i + 1; k <= std::min(i + half, n - 1); ++k) add_row(c + i * W, -band[i * width + half + k - i], c + k * W);
            for (int w = 0; w < W; ++w) c[i * W + w] *= band[i * width + half];
        }
    }
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
}  // namespace regnet
