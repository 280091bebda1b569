#pragma once
// A CUDA stream as the core sees it: no header of CUDA, so that the binding needs none.
namespace regnet {

struct Cuda {
    int device;            // that the stream belongs to
    void* stream;
    const char* operation; // named by the errors
};
}  // namespace regnet
