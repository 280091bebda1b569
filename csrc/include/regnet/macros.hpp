#pragma once
// The only header that asks which compiler is running.
#ifdef __CUDACC__
#define REGNET_HD __host__ __device__ __forceinline__
#define REGNET_APART __host__ __device__ __noinline__
#else
#define REGNET_HD inline __attribute__((always_inline))
#define REGNET_APART __attribute__((noinline))
#endif
