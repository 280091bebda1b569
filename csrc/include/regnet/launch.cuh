#pragma once
// How functors are run on a GPU: the only place that launches a kernel.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include "regnet/cuda.hpp"
#include "regnet/sampling.hpp"
namespace regnet {

constexpr int kThreads = 256, kBlocks = 2;  // in a block, and on a multiprocessor at least: 128 registers a thread
constexpr int64_t kMostBlocks = 1 << 20;  // more work than that goes round the grid again

inline void check(const Cuda& cuda, cudaError_t error) {
    if (error == cudaSuccess) return;
    cudaGetLastError();  // ours now: the next call of anybody is not to find it
    std::string what = std::string("regnet::") + cuda.operation + ": " + cudaGetErrorString(error);
    if (error == cudaErrorNoKernelImageForDevice)
        what += "; the module was built for the architectures " REGNET_ARCHITECTURES ": build it again with CMAKE_CUDA_ARCHITECTURES for this GPU";
    throw std::runtime_error(what);
}

// The device may have been changed by torch, whose own CUDA runtime this module does not share.
inline void enter(const Cuda& cuda) {
    int current = -1;
    check(cuda, cudaGetDevice(&current));
    if (current != cuda.device) check(cuda, cudaSetDevice(cuda.device));
}
inline void copy(const Cuda& cuda, void* to, const void* from, size_t bytes) {
    enter(cuda);
    check(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(cuda.stream)));
}

template <class Body>
__global__ void __launch_bounds__(kThreads, kBlocks) everywhere(const __grid_constant__ Body body, const int64_t count) {
    const int64_t stride = int64_t(gridDim.x) * kThreads;
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) body(i);
}

// body(i) for every i below count, in any order.
template <class Body>
void launch(const Cuda& cuda, int64_t count, const Body& body) {
    if (count == 0) return;
    static_assert(sizeof(Body) + sizeof count <= 4096, "before CUDA 12.1 a kernel takes no more");
    enter(cuda);
    const auto blocks = unsigned(std::min((count + kThreads - 1) / kThreads, kMostBlocks));
    void* arguments[] = {const_cast<Body*>(&body), &count};
    check(cuda, cudaLaunchKernel(&everywhere<Body>, dim3(blocks), dim3(kThreads), arguments, 0, static_cast<cudaStream_t>(cuda.stream)));
}

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

template <int D, class V>
int64_t count_of(const V& samples) {
    int64_t count = samples.batch;
    for (int d = 0; d < D; ++d) count *= samples.size[d];
    return count;
}

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
// One sample a thread, all of which add to the target; in any order, so the last bits differ from run to run.
template <int D, class T, class Kernel>
struct OneTarget {
    Kernel kernel;
    Unravel<D> unravel;

    REGNET_HD void operator()(int64_t i) const {
        int64_t position[D];
        const int64_t n = unravel(i, position);
        run<D, T>(kernel, kernel.row(n, position, {}), position[D - 1], position[D - 1] + 1);
    }
};

template <int D, class T, class Kernel>
void for_samples(const Cuda& cuda, const Kernel& kernel) {
    const int64_t count = count_of<D>(kernel.samples());
    launch(cuda, count, OneSample<D, T, Kernel>{kernel, {kernel.samples(), count}});
}
template <int D, class T, class Kernel>
void for_targets(const Cuda& cuda, const Kernel& kernel) {
    const int64_t count = count_of<D>(kernel.samples());
    launch(cuda, count, OneTarget<D, T, Kernel>{kernel, {kernel.samples(), count}});
}
}  // namespace regnet
