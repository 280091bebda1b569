#include "regnet/gpu.hpp"
#include "scatter.inl"
namespace regnet {
template void scatter<Cuda>(Cuda, int, const TensorRef&, const Where&, const TensorRef&, const Options&);
}
