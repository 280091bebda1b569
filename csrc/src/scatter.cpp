#include "regnet/drivers.hpp"
#include "scatter.inl"
namespace regnet {
template void scatter<Cpu>(Cpu, int, const TensorRef&, const Where&, const TensorRef&, const Options&);
}
