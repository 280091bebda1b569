#pragma once
#include <cstdint>
#include <cstring>
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

        // The coordinates of `used` samples from j on, side by side in vectors; the rest is anything.
        template <int Size>
        REGNET_HD void load(int64_t j, int used, typename LaneOf<T, Size>::type (&x)[D]) const {
            T ramp[Size];
            for (int s = 0; s < Size; ++s) ramp[s] = slope * (T(j) + T(s));
            for (int d = 0; d < D; ++d) {
                const T* from = along[d] + j * step;
                if (used == Size && step == 1) {
                    std::memcpy(&x[d], from, sizeof x[d]);
                } else {
                    T some[Size] = {};
                    for (int s = 0; s < used; ++s) some[s] = from[s * step];
                    std::memcpy(&x[d], some, sizeof x[d]);
                }
                x[d] += start[d];
            }
            typename LaneOf<T, Size>::type positions;
            std::memcpy(&positions, ramp, sizeof positions);
            x[D - 1] += positions;
            if (matrix) {
                typename LaneOf<T, Size>::type y[D];
                for (int d = 0; d < D; ++d) {
                    y[d] = x[0] * matrix[d * (D + 1)] + matrix[d * (D + 1) + D];
                    for (int e = 1; e < D; ++e) y[d] += matrix[d * (D + 1) + e] * x[e];
                }
                for (int d = 0; d < D; ++d) x[d] = y[d];
            }
        }
        REGNET_HD void load(int64_t j, T (&x)[D]) const { load<1>(j, 1, x); }
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
