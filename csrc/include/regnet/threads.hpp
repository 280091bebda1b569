#pragma once
// What a thread of a GPU does: one sample, and again one a whole grid of threads later, until there are none left.
#include <cstdint>
#include <limits>
#include "regnet/sampling.hpp"
namespace regnet {

constexpr int kThreads = 256, kBlocks = 2;  // in a block, and on a multiprocessor at least: 128 registers a thread
constexpr int64_t kMostBlocks = 1 << 20;    // more work than that goes round the grid again

// The blocks that serve so many samples.
inline unsigned blocks_for(int64_t count) {
    const int64_t blocks = (count + kThreads - 1) / kThreads;
    return unsigned(blocks < kMostBlocks ? blocks : kMostBlocks);
}
#ifdef __CUDACC__
template <class Body>
__device__ __forceinline__ void go_round(const Body& body, int64_t count) {
    const int64_t stride = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) body(i);
}
#endif

// Digits of a number: the position of sample i.  A division of 64 bits costs as much as a whole sample, so small
// counts are divided in 32.
template <int D>
struct Unravel {
    int64_t size[D];
    bool narrow;

    template <class Samples>
    Unravel(const Samples& samples, int64_t count) : narrow(count <= std::numeric_limits<int32_t>::max()) {
        for (int d = 0; d < D; ++d) size[d] = samples.size[d];
    }
    template <class Index>
    REGNET_HD int64_t digits(Index i, int64_t (&position)[D]) const {
        for (int d = D - 1; d >= 0; --d) {
            const Index n = Index(size[d]), rest = i / n;
            position[d] = int64_t(i - rest * n);
            i = rest;
        }
        return int64_t(i);
    }
    // Returns the batch item.
    REGNET_HD int64_t operator()(int64_t i, int64_t (&position)[D]) const {
        return narrow ? digits(uint32_t(i), position) : digits(uint64_t(i), position);
    }
};

// One sample a thread.
template <int D, class T, class Kernel>
struct OneSample {
    Kernel kernel;
    Unravel<D> unravel;

    REGNET_HD void operator()(int64_t i) const {
        int64_t position[D];
        const int64_t n = unravel(i, position);
        run<D, T>(kernel, kernel.row(n, position), position[D - 1], position[D - 1] + 1);
    }
};

template <class Device, class Body> void launch(const Device&, int64_t count, const Body&);  // body(i) for every i below count, in any order

template <int D, class T, class Device, class Kernel>
void for_samples(const Device& device, const Kernel& kernel) {
    const auto& samples = kernel.samples();
    int64_t count = samples.batch;
    for (int d = 0; d < D; ++d) count *= samples.size[d];
    launch(device, count, OneSample<D, T, Kernel>{kernel, {samples, count}});
}
// Samples that add to a target do so in any order: their sums differ from run to run in the last bits.
template <int D, class T, class Device, class Kernel>
void for_targets(const Device& device, const Kernel& kernel) { for_samples<D, T>(device, kernel); }
}  // namespace regnet
