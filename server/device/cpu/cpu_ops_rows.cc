// The ops of CpuOps that are cut by rows, columns or heads.
#include <algorithm>

#include "server/device/cpu/block_sizes.h"
#include "server/device/cpu/cpu_ops.h"
#include "server/device/host/inline_stream.h"

namespace penstock::server::device::cpu {
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
  Share(width, kColumnsAtOnce, [&](int64_t first, int64_t last) {
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
  Share(args.x.columns(), kColumnsAtOnce, [&](int64_t first, int64_t last) {
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

}  // namespace penstock::server::device::cpu
