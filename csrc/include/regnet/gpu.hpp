#pragma once
// How functors are run on a GPU: by kernels that nvcc compiled, or by kernels that are compiled at run time.
#ifdef REGNET_PLAN
#include "regnet/plan.hpp"
#else
#include "regnet/launch.cuh"
#endif
