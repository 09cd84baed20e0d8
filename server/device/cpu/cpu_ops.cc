#include "server/device/cpu/cpu_ops.h"

#include <algorithm>
#include <numeric>

#include "common/log/log.h"
#include "server/device/host/inline_stream.h"
#include "server/device/host/memory_ops.h"

namespace penstock::server::device::cpu {
namespace {

// Blocks of work, large against the cost of handing one to a thread.
constexpr int64_t kElements = 16384;
constexpr int64_t kColumns = 64;
constexpr int64_t kSumBlock = 4096;  // DESIGN section 6, 8.

int64_t RowsAtOnce(int64_t width) {
  return std::max<int64_t>(1, kElements / std::max<int64_t>(1, width));
}

int64_t RoundUp(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

float* Row(const Tensor& tensor, int64_t r) {
  return tensor.f32() + r * tensor.row_stride();
}

// The packed W, for x * W; W transposed follows it.
float* ForwardPart(const Weight& weight) {
  CHECK(weight.packed.present()) << "weight was not packed";
  return weight.packed.f32();
}

}  // namespace

CpuOps::CpuOps(Isa isa, int threads)
    : kernels_(KernelsFor(isa)), pool_(threads), thread_scratch_(threads) {}

int64_t CpuOps::PackedFloats(int64_t k, int64_t n) const {
  return RoundUp(k * RoundUp(n, kernels_.blocks.panel()), 16);
}

void CpuOps::PackB(const Operand& b, int64_t k, int64_t n, float* to) {
  const int64_t panel = kernels_.blocks.panel();
  Share(RoundUp(n, panel) / panel, 4, [&](int64_t first, int64_t last) {
    kernels_.pack_b(b, k, n, first, last, to);
  });
}

void CpuOps::RunGemm(const Gemm& gemm, int64_t m) {
  if (m == 0) return;
  const KernelBlocks& blocks = kernels_.blocks;
  // At least two blocks, so that two threads have work, of about equal size.
  const int64_t count = std::max<int64_t>(2, (m + blocks.mc - 1) / blocks.mc);
  const int64_t unit = RoundUp((m + count - 1) / count, blocks.mr);
  ShareTasks((m + unit - 1) / unit, blocks.packed_a_floats(),
             [&](int64_t task, float* scratch) {
               kernels_.gemm_rows(gemm, task * unit,
                                  std::min(m, (task + 1) * unit), scratch);
             });
}

void CpuOps::Share(int64_t items, int64_t unit,
                   const std::function<void(int64_t, int64_t)>& work) {
  pool_.Run((items + unit - 1) / unit, [&](int64_t block, int) {
    work(block * unit, std::min(items, (block + 1) * unit));
  });
}

void CpuOps::ShareTasks(int64_t tasks, int64_t floats,
                        const std::function<void(int64_t, float*)>& work) {
  pool_.Run(tasks, [&](int64_t task, int thread) {
    work(task, thread_scratch_[thread].Floats(floats));
  });
}

int64_t CpuOps::PackedWeightBytes(int64_t in, int64_t out,
                                  WeightLayout /*layout*/) const {
  return (PackedFloats(in, out) + PackedFloats(out, in)) *
         static_cast<int64_t>(sizeof(float));
}

void CpuOps::PackWeight(Stream& stream, const Weight& weight) {
  if (!stream.status().ok()) return;
  SetFlushDenormals();
  common::sync::MutexLock lock(&mutex_);
  const int64_t in = weight.in(), out = weight.out();
  CHECK_EQ(weight.packed.bytes(), PackedWeightBytes(in, out, weight.layout));
  const bool in_out = weight.layout == WeightLayout::kInOut;
  const Operand forward = {
      .data = weight.master.f32(),
      .stride = weight.master.columns(),
      .order = in_out ? Operand::kDepthOuter : Operand::kItemOuter};
  Operand backward = forward;
  backward.order = in_out ? Operand::kItemOuter : Operand::kDepthOuter;
  PackB(forward, in, out, weight.packed.f32());
  PackB(backward, out, in, weight.packed.f32() + PackedFloats(in, out));
}

void CpuOps::LinearForward(Stream& stream, const LinearForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t in = args.weight.in(), out = args.weight.out();
  RunGemm({.a = {.data = args.x.f32(), .stride = in},
           .packed_b = ForwardPart(args.weight),
           .packed_k = in,
           .packed_n = out,
           .k = in,
           .n = out,
           .c = args.y.f32(),
           .c_stride = out,
           .bias = args.bias.present() ? args.bias.f32() : nullptr},
          args.x.rows());
}

void CpuOps::LinearBackwardInput(Stream& stream,
                                 const LinearBackwardInputArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t in = args.weight.in(), out = args.weight.out();
  RunGemm({.a = {.data = args.dy.f32(), .stride = out},
           .packed_b = ForwardPart(args.weight) + PackedFloats(in, out),
           .packed_k = out,
           .packed_n = in,
           .k = out,
           .n = in,
           .c = args.dx.f32(),
           .c_stride = in},
          args.dy.rows());
}

void CpuOps::LinearBackwardWeight(Stream& stream,
                                  const LinearBackwardWeightArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t rows = args.x.rows();
  const bool in_out = args.layout == WeightLayout::kInOut;
  // dW's rows are those of `left`, its columns those of `right`.
  const Tensor& left = in_out ? args.x : args.dy;
  const Tensor& right = in_out ? args.dy : args.x;
  const int64_t m = left.columns(), n = right.columns();
  float* packed = shared_scratch_.Floats(PackedFloats(rows, n));
  PackB({.data = right.f32(), .stride = n, .order = Operand::kDepthOuter}, rows,
        n, packed);
  RunGemm(
      {.a = {.data = left.f32(), .stride = m, .order = Operand::kDepthOuter},
       .packed_b = packed,
       .packed_k = rows,
       .packed_n = n,
       .k = rows,
       .n = n,
       .c = args.dw.f32(),
       .c_stride = n,
       .accumulate = args.accumulate == Accumulate::kAdd},
      m);
  if (!args.dbias.present()) return;
  Share(args.dy.columns(), kColumns, [&](int64_t first, int64_t last) {
    kernels_.column_sums(args.dy, args.accumulate, first, last,
                         args.dbias.f32());
  });
}

void CpuOps::EmbeddingForward(Stream& stream,
                              const EmbeddingForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t seq = args.ids.columns(), width = args.tokens.columns();
  Share(args.ids.elements(), RowsAtOnce(width),
        [&](int64_t first, int64_t last) {
          for (int64_t r = first; r < last; ++r) {
            const float* token = args.tokens.f32() + args.ids.i32()[r] * width;
            float* y = args.y.f32() + r * width;
            if (args.positions.present()) {
              kernels_.add(token, args.positions.f32() + r % seq * width, y,
                           width);
            } else {
              std::copy_n(token, width, y);
            }
          }
        });
}

void CpuOps::EmbeddingBackward(Stream& stream,
                               const EmbeddingBackwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t rows = args.ids.elements(), seq = args.ids.columns();
  const int64_t width = args.dtokens.columns();
  const bool store = args.accumulate == Accumulate::kStore;
  // Threads take columns, so that each adds a token's rows in order.
  Share(width, kColumns, [&](int64_t first, int64_t last) {
    const int64_t n = last - first;
    const auto clear = [&](const Tensor& tensor) {
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        std::fill_n(tensor.f32() + r * width + first, n, 0.0f);
      }
    };
    if (store) clear(args.dtokens);
    if (store && args.dpositions.present()) clear(args.dpositions);
    for (int64_t r = 0; r < rows; ++r) {
      const float* dy = args.dy.f32() + r * width + first;
      float* token = args.dtokens.f32() + args.ids.i32()[r] * width + first;
      kernels_.add(token, dy, token, n);
      if (!args.dpositions.present()) continue;
      float* position = args.dpositions.f32() + r % seq * width + first;
      kernels_.add(position, dy, position, n);
    }
  });
}

void CpuOps::LayerNormForward(Stream& stream,
                              const LayerNormForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.rows(), RowsAtOnce(args.x.columns()),
        [&](int64_t first, int64_t last) {
          kernels_.norm_forward(args, first, last);
        });
}

void CpuOps::LayerNormBackwardInput(Stream& stream,
                                    const LayerNormBackwardInputArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.rows(), RowsAtOnce(args.x.columns()),
        [&](int64_t first, int64_t last) {
          kernels_.norm_backward_input(args, first, last);
        });
}

void CpuOps::LayerNormBackwardWeight(Stream& stream,
                                     const LayerNormBackwardWeightArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.columns(), kColumns, [&](int64_t first, int64_t last) {
    kernels_.norm_backward_weight(args, first, last);
  });
}

void CpuOps::Rope(Stream& stream, const RopeArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.rows(), RowsAtOnce(args.x.columns()),
        [&](int64_t first, int64_t last) { kernels_.rope(args, first, last); });
}

void CpuOps::AttentionForward(Stream& stream,
                              const AttentionForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  ShareTasks(args.shape.batch * args.shape.heads,
             kernels_.attention_forward_floats(args.shape),
             [&](int64_t task, float* scratch) {
               kernels_.attention_forward(args, task, scratch);
             });
}

void CpuOps::AttentionBackward(Stream& stream,
                               const AttentionBackwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  ShareTasks(args.shape.batch * args.shape.kv_heads,
             kernels_.attention_backward_floats(args.shape),
             [&](int64_t task, float* scratch) {
               kernels_.attention_backward(args, task, scratch);
             });
}

void CpuOps::GeluForward(Stream& stream, const GeluForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.elements(), kElements, [&](int64_t first, int64_t last) {
    kernels_.gelu(args.x.f32() + first, args.y.f32() + first,
                  args.slope.f32() + first, last - first);
  });
}

void CpuOps::Multiply(Stream& stream, const MultiplyArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.y.elements(), kElements, [&](int64_t first, int64_t last) {
    kernels_.multiply(args.a.f32() + first, args.b.f32() + first,
                      args.y.f32() + first, last - first);
  });
}

// Rows one by one: they may be strided.
void CpuOps::SwigluForward(Stream& stream, const SwigluForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t n = args.y.columns();
  Share(args.y.rows(), RowsAtOnce(n), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      kernels_.swiglu(Row(args.gate, r), Row(args.up, r), Row(args.y, r), n);
    }
  });
}

void CpuOps::SwigluBackward(Stream& stream, const SwigluBackwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t n = args.dy.columns();
  Share(args.dy.rows(), RowsAtOnce(n), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      kernels_.swiglu_backward(Row(args.gate, r), Row(args.up, r),
                               Row(args.dy, r), Row(args.dgate, r),
                               Row(args.dup, r), n);
    }
  });
}

void CpuOps::Add(Stream& stream, const AddArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.y.elements(), kElements, [&](int64_t first, int64_t last) {
    kernels_.add(args.a.f32() + first, args.b.f32() + first,
                 args.y.f32() + first, last - first);
  });
}

void CpuOps::ApplyDropout(Stream& stream, const DropoutArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t batch = args.x.shape().dim(0);
  const int64_t size = args.x.shape().dim(1) * args.x.shape().dim(2);
  if (args.dropout.rate == 0) {
    Share(batch * size, kElements, [&](int64_t first, int64_t last) {
      const float* x = args.x.f32() + first;
      float* y = args.y.f32() + first;
      if (args.residual.present()) {
        kernels_.add(args.residual.f32() + first, x, y, last - first);
      } else if (x != y) {
        std::copy_n(x, last - first, y);
      }
    });
    return;
  }
  const int64_t blocks = (size + kElements - 1) / kElements;
  Share(batch * blocks, 1, [&](int64_t task, int64_t) {
    const int64_t first = task % blocks * kElements;
    kernels_.dropout(args, task / blocks, first,
                     std::min(first + kElements, size));
  });
}

void CpuOps::CrossEntropyForward(Stream& stream,
                                 const CrossEntropyForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t batch = args.sequence_loss.elements();
  double* loss = shared_scratch_.Doubles(args.logits.rows());
  Share(args.logits.rows(), RowsAtOnce(args.logits.columns()),
        [&](int64_t first, int64_t last) {
          kernels_.cross_entropy_forward(args, first, last, loss);
        });
  for (int64_t b = 0; b < batch; ++b) {
    double sum = 0;
    int64_t valid = 0;
    for (int64_t r = b * args.seq; r < (b + 1) * args.seq; ++r) {
      sum += loss[r];
      valid += args.labels.i32()[r] != kIgnoredLabel;
    }
    args.sequence_loss.f64()[b] = sum;
    args.sequence_valid.i64()[b] = valid;
  }
}

void CpuOps::CrossEntropyBackward(Stream& stream,
                                  const CrossEntropyBackwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.logits.rows(), RowsAtOnce(args.logits.columns()),
        [&](int64_t first, int64_t last) {
          kernels_.cross_entropy_backward(args, first, last);
        });
}

void CpuOps::Adamw(Stream& stream, const AdamwArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.gradient.elements(), kElements, [&](int64_t first, int64_t last) {
    kernels_.adamw(args, first, last);
  });
}

void CpuOps::Sgd(Stream& stream, const SgdArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.gradient.elements(), kElements,
        [&](int64_t first, int64_t last) { kernels_.sgd(args, first, last); });
}

void CpuOps::SumSquares(Stream& stream, const SumSquaresArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t size = args.x.elements();
  const int64_t blocks = (size + kSumBlock - 1) / kSumBlock;
  double* sums = shared_scratch_.Doubles(blocks);
  Share(blocks, 8, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kSumBlock;
      sums[block] = kernels_.sum_squares(args.x.f32() + begin,
                                         std::min(kSumBlock, size - begin));
    }
  });
  *args.sum.f64() = std::accumulate(sums, sums + blocks, 0.0);
}

void CpuOps::Convert(Stream& stream, const ConvertArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  host::Convert(args);
}

void CpuOps::Fill(Stream& stream, const FillArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  host::Fill(args);
}

void CpuOps::Copy(Stream& stream, const CopyArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  host::Copy(args);
}

}  // namespace penstock::server::device::cpu
