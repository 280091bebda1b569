#pragma once
// The only header that asks which compiler is running.
#ifdef __CUDACC__
#define REGNET_HD __host__ __device__ __forceinline__
#define REGNET_APART __host__ __device__ __noinline__
#define REGNET_PRAGMA(text) _Pragma(#text)
#define REGNET_UNROLL(count) _Pragma("unroll")
#define REGNET_UNROLL_ON_GPU(count) REGNET_PRAGMA(unroll(count))  // arrays live in registers where each index is a constant
#else
#define REGNET_HD inline __attribute__((always_inline))
#define REGNET_APART __attribute__((noinline))
#define REGNET_PRAGMA(text) _Pragma(#text)
#define REGNET_UNROLL(count) REGNET_PRAGMA(GCC unroll count)
#define REGNET_UNROLL_ON_GPU(count)
#ifndef REGNET_PLAN  // where host code plans what GPUs do, no sample is served
#define REGNET_PACKS  // samples side by side in a register: the vectors of GCC and Clang
#endif
#endif
#include <cmath>
#include <cstdint>
namespace regnet {
// Adding to a number that other threads may add to as well.  On a CPU none does: each has its own slab of a target.
template <class T> REGNET_HD void accumulate(T* to, T value) {
#ifdef __CUDA_ARCH__
    atomicAdd(to, value);
#else
    *to += value;
#endif
}
// To a sum of whole numbers, which is the same in any order.
template <class T> REGNET_HD void accumulate(int64_t* to, T value) {
#ifdef __CUDA_ARCH__
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(llrint(value)));
#else
    *to += std::llrint(value);
#endif
}
}  // namespace regnet
