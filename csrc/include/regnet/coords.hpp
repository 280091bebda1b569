#pragma once
#include <cstdint>
#include "regnet/pack.hpp"
#include "regnet/tensor.hpp"
namespace regnet {

// Where each sample is taken: at field(p), or at p + field(p), or at matrix @ (that, 1).  Nothing is materialised.
template <int D, class T>
struct Coords {
    View<D, const T> field;  // (N, D, *out), voxels
    bool relative;
    const T* matrix;         // (N, D, D + 1) contiguous, or null
    int64_t matrix_step;     // between batch items

    Coords(const TensorRef& coords, bool is_relative, const TensorRef& affine)
        : field(coords), relative(is_relative), matrix(static_cast<const T*>(affine.data)), matrix_step(affine.data ? affine.stride[0] : 0) {}

    // One row: everything but the position along the last axis.
    struct Row {
        const T* along[D];
        int64_t step;
        T start[D], slope;
        const T* matrix;

        // The coordinates of `used` samples from j on, one sample or as many as a pack holds; the rest is anything.
        template <class Lanes>
        REGNET_HD void load(int64_t j, int used, typename Lanes::V (&x)[D]) const {
            using V = typename Lanes::V;
REGNET_UNROLL(3)
            for (int d = 0; d < D; ++d) x[d] = Lanes::load(along[d] + j * step, step, used) + start[d];
            x[D - 1] += slope * (Lanes::iota() + T(j));
            if (matrix) {
                const V far = V{} + T(1e18);  // as good as infinite, but times 0 it is 0
                for (int d = 0; d < D; ++d) x[d] = x[d] > far ? far : x[d] < -far ? -far : x[d];
                V y[D];
                for (int d = 0; d < D; ++d) {
                    y[d] = x[0] * matrix[d * (D + 1)] + matrix[d * (D + 1) + D];
                    for (int e = 1; e < D; ++e) y[d] += matrix[d * (D + 1) + e] * x[e];
                }
                for (int d = 0; d < D; ++d) x[d] = y[d];
            }
        }
    };
    REGNET_HD Row row(int64_t n, const int64_t (&position)[D]) const {
        Row r;
        for (int d = 0; d < D; ++d) {
            r.along[d] = field.row(n, d, position);
            r.start[d] = relative && d + 1 < D ? T(position[d]) : T(0);
        }
        r.step = field.step();
        r.slope = relative ? T(1) : T(0);
        r.matrix = matrix ? matrix + n * matrix_step : nullptr;
        return r;
    }
};
}  // namespace regnet
