// The entry points for GPUs as any C++ compiler takes them: what they launch is planned here and compiled at run time.
#include "sample.cu"
#include "contract.cu"
#include "scatter.cu"
#include "scatter_whole.cu"
#include "vote.cu"
#include "lines.cu"
#include "lattice.cu"
