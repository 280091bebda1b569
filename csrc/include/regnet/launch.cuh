#pragma once
// How functors are run by a module that nvcc compiled: the only place that launches a kernel.
#include <cuda_runtime.h>
#include <stdexcept>
#include <string>
#include "regnet/cuda.hpp"
#include "regnet/threads.hpp"
namespace regnet {

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

template <class Body>
__global__ void __launch_bounds__(kThreads, kBlocks) everywhere(const __grid_constant__ Body body, const int64_t count) {
    go_round(body, count);
}

template <class Device, class Body>
void launch(const Device& cuda, int64_t count, const Body& body) {
    if (count == 0) return;
    static_assert(sizeof(Body) + sizeof count <= 4096, "before CUDA 12.1 a kernel takes no more");
    enter(cuda);
    void* arguments[] = {const_cast<Body*>(&body), &count};
    check(cuda, cudaLaunchKernel(&everywhere<Body>, dim3(blocks_for(count)), dim3(kThreads), arguments, 0, static_cast<cudaStream_t>(cuda.stream)));
}
}  // namespace regnet
