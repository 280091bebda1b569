#include "regnet/gpu.hpp"
#include "vote.inl"
namespace regnet {
template void vote<Cuda>(Cuda, const TensorRef&, const Where&, const TensorRef&, int, int64_t);
}
