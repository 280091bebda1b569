#include "regnet/drivers.hpp"
#include "sample.inl"
namespace regnet {
template void sample<Cpu>(Cpu, int, const TensorRef&, const Where&, const TensorRef&, const Options&);
}
