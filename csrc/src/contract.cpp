#include "regnet/drivers.hpp"
#include "contract.inl"
namespace regnet {
template void contract<Cpu>(Cpu, int, const TensorRef&, const Where&, const TensorRef&, const TensorRef&, const Options&);
}
