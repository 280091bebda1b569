#pragma once
// A CUDA runtime for machines without one, for tests of the core's sources for GPUs: what they use of it, on a CPU.
// Kernels run thread after thread, so nothing is raced for.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

struct dim3 {
    unsigned x, y = 1, z = 1;
    explicit dim3(unsigned n) : x(n) {}
};
inline thread_local dim3 gridDim(1), blockIdx(0), threadIdx(0);

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorNoDevice = 100, cudaErrorNoKernelImageForDevice = 209 };
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice };

inline int standin(const char* setting, int otherwise) {
    const char* value = std::getenv(setting);
    return value ? std::atoi(value) : otherwise;
}
inline const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorNoKernelImageForDevice ? "no kernel image is available for execution on the device" : "an error";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    return std::memcpy(to, from, bytes), cudaSuccess;
}

template <class... Parameters, size_t... I>
void standin_call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<Parameters*>(arguments[I])...);
}
// Of the blocks asked for, no more than STANDIN_BLOCKS: a kernel must go round any grid.
template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t) {
    if (const int error = standin("STANDIN_ERROR", 0)) return cudaError_t(error);
    gridDim = dim3(std::min(grid.x, unsigned(standin("STANDIN_BLOCKS", 1 << 30))));
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
            standin_call(kernel, arguments, std::index_sequence_for<Parameters...>{});
    return cudaSuccess;
}
