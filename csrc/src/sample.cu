#include "regnet/gpu.hpp"
#include "sample.inl"
namespace regnet {
template void sample<Cuda>(Cuda, int, const TensorRef&, const Where&, const TensorRef&, const Options&);
}
