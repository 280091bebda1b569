#pragma once
#include <array>
#include <cstdint>
#include "regnet/macros.hpp"
namespace regnet {

enum class DType : int { f32, f64, u8, i8, u16, i16, u32, i32, u64, i64 };  // part of the binding: regnet/ops/_core.py
constexpr int kMaxRank = 5;  // (N, C, up to 3 spatial axes)

// What the caller hands over: never owned, never allocated here.
struct TensorRef {
    void* data = nullptr;
    DType dtype = DType::f32;
    int rank = 0;
    std::array<int64_t, kMaxRank> shape{}, stride{};  // strides in elements

    int dim() const { return rank - 2; }
};

// A contiguous tensor as lines along one spatial axis: (outer, length, inner).
struct Lines {
    int64_t outer = 1, length, inner = 1;

    Lines(const TensorRef& t, int axis) : length(t.shape[axis + 2]) {
        for (int i = 0; i < axis + 2; ++i) outer *= t.shape[i];
        for (int i = axis + 3; i < t.rank; ++i) inner *= t.shape[i];
    }
    int64_t count() const { return outer * length * inner; }
};

// What a kernel sees: (N, C, *spatial) with D spatial axes, passed by value.
template <int D, class T>
struct View {
    T* data;
    int64_t batch, channels, stride_n, stride_c;
    int64_t size[D], stride[D];

    explicit View(const TensorRef& t)
        : data(static_cast<T*>(t.data)), batch(t.shape[0]), channels(t.shape[1]),
          stride_n(t.stride[0]), stride_c(t.stride[1]) {
        for (int d = 0; d < D; ++d) { size[d] = t.shape[2 + d]; stride[d] = t.stride[2 + d]; }
    }
    REGNET_HD T* at(int64_t n, int64_t c) const { return data + n * stride_n + c * stride_c; }

    // Start of a row: all axes but the last are fixed by `position`.
    REGNET_HD T* row(int64_t n, int64_t c, const int64_t (&position)[D]) const {
        T* p = at(n, c);
        for (int d = 0; d + 1 < D; ++d) p += position[d] * stride[d];
        return p;
    }
    REGNET_HD int64_t step() const { return stride[D - 1]; }
};
}  // namespace regnet
