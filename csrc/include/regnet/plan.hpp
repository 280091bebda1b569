#pragma once
// How functors are run by kernels that are compiled at run time: what to launch is written down, and launched by
// regnet/ops/_kernels.py.  Any C++ compiler will do, and no GPU is needed.
#include <cstddef>
#include <typeinfo>
#include "regnet/threads.hpp"
namespace regnet {

struct Cuda {
    void* plan;
    void (*add)(void* plan, const std::type_info& body, const void* bytes, size_t size, int64_t count);
};

template <class Device, class Body>
void launch(const Device& cuda, int64_t count, const Body& body) {
    static_assert(std::is_trivially_copyable_v<Body>, "it travels as bytes");
    static_assert(sizeof(Body) + sizeof count <= 4096, "before CUDA 12.1 a kernel takes no more");
    if (count) cuda.add(cuda.plan, typeid(Body), &body, sizeof body, count);
}
}  // namespace regnet
