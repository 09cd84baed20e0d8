#include "server/device/cpu/kernels.h"

namespace penstock::server::device::cpu {

Kernels KernelsFor(Isa isa) {
  Kernels kernels = {};
  FillGemmKernels(isa, kernels);
  FillElementwiseKernels(isa, kernels);
  FillNormKernels(isa, kernels);
  FillLossKernels(isa, kernels);
  FillAttentionKernels(isa, kernels);
  FillOptimizerKernels(isa, kernels);
  return kernels;
}

}  // namespace penstock::server::device::cpu
