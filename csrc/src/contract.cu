#include "regnet/gpu.hpp"
#include "contract.inl"
namespace regnet {
template void contract<Cuda>(Cuda, int, const TensorRef&, const Where&, const TensorRef&, const TensorRef&, const Options&);
}
