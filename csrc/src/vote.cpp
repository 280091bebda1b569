#include "regnet/drivers.hpp"
#include "vote.inl"
namespace regnet {
template void vote<Cpu>(Cpu, const TensorRef&, const Where&, const TensorRef&, int, int64_t);
}
