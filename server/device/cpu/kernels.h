// The kernels of one instruction-set level, as a table of functions.
//
// Each *_kernels.cc compiles its functions once per level (Highway's
// foreach_target) and fills them in; CpuOps cuts ops into blocks and calls
// them. A block's result depends only on its arguments. All functions are
// thread-safe as long as their outputs and scratch memory differ.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_KERNELS_H_
#define PENSTOCK_SERVER_DEVICE_CPU_KERNELS_H_

#include <cstdint>

#include "server/device/cpu/isa.h"
#include "server/device/cpu/kernel_table.h"
#include "server/device/ops.h"

namespace penstock::server::device::cpu {

// A factor of a product before it is packed. Items are rows of A or columns of
// B; depth is the summed index.
struct Operand {
  // Whose elements are `stride` apart: kDepthOuter is data[depth * stride +
  // item], kItemOuter data[item * stride + depth].
  enum Order { kDepthOuter, kItemOuter };
  const float* data = nullptr;
  int64_t stride = 0;
  Order order = kItemOuter;
};

// C (m, n) = A * B, with one epilogue. B is packed already, in one go of
// (packed_k, packed_n); k and n may be smaller.
struct Gemm {
  Operand a;
  const float* packed_b = nullptr;
  int64_t packed_k = 0, packed_n = 0;
  int64_t k = 0, n = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  const float* bias = nullptr;  // (n), or none. Not with accumulate.
  bool accumulate = false;      // C += A * B
};

struct Kernels {
  KernelBlocks blocks;

  // Products (gemm-inl.h). packed_b floats of B (k, n): k * n rounded up to
  // blocks.panel(). Panels [first, last) of n / panel() rounded up.
  void (*pack_b)(const Operand& b, int64_t k, int64_t n, int64_t first,
                 int64_t last, float* to);
  // Rows [m0, m1) of C; scratch: blocks.packed_a_floats().
  void (*gemm_rows)(const Gemm& gemm, int64_t m0, int64_t m1, float* scratch);
  // sums[c] (=, += with add) sum over rows ascending of x (rows, columns),
  // for columns [first, last).
  void (*column_sums)(const Tensor& x, Accumulate accumulate, int64_t first,
                      int64_t last, float* sums);

  // n elements.
  void (*add)(const float* a, const float* b, float* y, int64_t n);
  void (*multiply)(const float* a, const float* b, float* y, int64_t n);
  void (*gelu)(const float* x, float* y, float* slope, int64_t n);
  void (*swiglu)(const float* gate, const float* up, float* y, int64_t n);
  void (*swiglu_backward)(const float* gate, const float* up, const float* dy,
                          float* dgate, float* dup, int64_t n);
  // Elements [first, last) of one sample. REQUIRES: first % 4 == 0, rate > 0.
  void (*dropout)(const DropoutArgs& args, int64_t sample, int64_t first,
                  int64_t last);

  // Rows [first, last), or columns for the weight gradient.
  void (*norm_forward)(const LayerNormForwardArgs& args, int64_t first,
                       int64_t last);
  void (*norm_backward_input)(const LayerNormBackwardInputArgs& args,
                              int64_t first, int64_t last);
  void (*norm_backward_weight)(const LayerNormBackwardWeightArgs& args,
                               int64_t first, int64_t last);
  void (*rope)(const RopeArgs& args, int64_t first, int64_t last);
  // loss[r]: nats of row r, 0 where it is ignored.
  void (*cross_entropy_forward)(const CrossEntropyForwardArgs& args,
                                int64_t first, int64_t last, double* loss);
  void (*cross_entropy_backward)(const CrossEntropyBackwardArgs& args,
                                 int64_t first, int64_t last);

  // One (sequence, query head); scratch: attention_forward_floats().
  void (*attention_forward)(const AttentionForwardArgs& args, int64_t task,
                            float* scratch);
  // One (sequence, key/value head).
  void (*attention_backward)(const AttentionBackwardArgs& args, int64_t task,
                             float* scratch);
  int64_t (*attention_forward_floats)(const AttentionShape& shape);
  int64_t (*attention_backward_floats)(const AttentionShape& shape);

  // Elements [first, last).
  void (*adamw)(const AdamwArgs& args, int64_t first, int64_t last);
  void (*sgd)(const SgdArgs& args, int64_t first, int64_t last);
  // f64 sum of the squares of n elements.
  double (*sum_squares)(const float* x, int64_t n);
};

// REQUIRES: the machine has `isa`.
Kernels KernelsFor(Isa isa);

// One *_kernels.cc's functions, as compiled for each level.
struct LevelFills {
  void (*sse4)(Kernels&) = nullptr;
  void (*avx2)(Kernels&) = nullptr;
  void (*avx512)(Kernels&) = nullptr;
};
void FillLevel(Isa isa, const LevelFills& fills, Kernels& kernels);

// Parts of KernelsFor.
void FillGemmKernels(Isa isa, Kernels& kernels);
void FillElementwiseKernels(Isa isa, Kernels& kernels);
void FillNormKernels(Isa isa, Kernels& kernels);
void FillLossKernels(Isa isa, Kernels& kernels);
void FillAttentionKernels(Isa isa, Kernels& kernels);
void FillOptimizerKernels(Isa isa, Kernels& kernels);

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_KERNELS_H_
