#include "server/device/cpu/kernels.h"

namespace penstock::server::device::cpu {

void FillLevel(Isa isa, const LevelFills& fills, Kernels& kernels) {
  switch (isa) {
    case Isa::kSse4:
      return fills.sse4(kernels);
    case Isa::kAvx2:
      return fills.avx2(kernels);
    case Isa::kAvx512:
      return fills.avx512(kernels);
  }
}

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
