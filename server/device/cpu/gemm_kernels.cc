// Products and column sums, per instruction-set level.
#include "server/device/cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/device/cpu/gemm_kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "server/device/cpu/gemm-inl.h"
#include "server/device/cpu/math-inl.h"

// Not the fallback that foreach_target also wants.
#if HWY_TARGET <= HWY_SSE4
HWY_BEFORE_NAMESPACE();
namespace penstock::server::device::cpu::HWY_NAMESPACE {

void PackB(const Operand& b, int64_t k, int64_t n, int64_t first, int64_t last,
           float* to) {
  PackBPanels(b, k, n, first, last, to);
}

void Rows(const Gemm& gemm, int64_t m0, int64_t m1, float* scratch) {
  GemmRows(gemm, m0, m1, scratch);
}

void ColumnSums(const Tensor& x, Accumulate accumulate, int64_t first,
                int64_t last, float* sums) {
  const int64_t rows = x.rows(), stride = x.row_stride();
  const float* data = x.f32();
  constexpr int kAtOnce = 4;  // Independent sums hide the adds' latency.
  for (int64_t c = first; c < last; c += kAtOnce * kLanes) {
    V sum[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t at = c + i * kLanes;
      sum[i] = accumulate == Accumulate::kAdd && at < last
                   ? math::LoadAt(sums, at, last)
                   : hn::Zero(D());
    }
    if (c + kAtOnce * kLanes <= last) {
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = data + r * stride + c;
        Unroll<kAtOnce>([&](auto i) HWY_ATTR {
          sum[i] = hn::Add(sum[i], hn::LoadU(D(), row + i * kLanes));
        });
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        for (int i = 0; i < kAtOnce && c + i * kLanes < last; ++i) {
          sum[i] = hn::Add(
              sum[i], math::LoadAt(data + r * stride, c + i * kLanes, last));
        }
      }
    }
    for (int i = 0; i < kAtOnce && c + i * kLanes < last; ++i) {
      math::StoreAt(sum[i], sums, c + i * kLanes, last);
    }
  }
}

void FillGemm(Kernels& kernels) {
  kernels.blocks = kBlocks;
  kernels.pack_b = PackB;
  kernels.gemm_rows = Rows;
  kernels.column_sums = ColumnSums;
}

}  // namespace penstock::server::device::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace penstock::server::device::cpu {

void FillGemmKernels(Isa isa, Kernels& kernels) {
  FillLevel(isa,
            {.sse4 = N_SSE4::FillGemm,
             .avx2 = N_AVX2::FillGemm,
             .avx512 = N_AVX3::FillGemm},
            kernels);
}

}  // namespace penstock::server::device::cpu
#endif
