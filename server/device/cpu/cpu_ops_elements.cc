// The ops of CpuOps that are cut by elements.
#include <algorithm>
#include <numeric>

#include "server/device/cpu/block_sizes.h"
#include "server/device/cpu/cpu_ops.h"
#include "server/device/host/inline_stream.h"
#include "server/device/host/memory_ops.h"

namespace penstock::server::device::cpu {
namespace {

float* Row(const Tensor& tensor, int64_t r) {
  return tensor.f32() + r * tensor.row_stride();
}

}  // namespace

void CpuOps::GeluForward(Stream& stream, const GeluForwardArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.x.elements(), kElementsAtOnce, [&](int64_t first, int64_t last) {
    kernels_.gelu(args.x.f32() + first, args.y.f32() + first,
                  args.slope.f32() + first, last - first);
  });
}

void CpuOps::Multiply(Stream& stream, const MultiplyArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.y.elements(), kElementsAtOnce, [&](int64_t first, int64_t last) {
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
  Share(args.y.elements(), kElementsAtOnce, [&](int64_t first, int64_t last) {
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
    Share(batch * size, kElementsAtOnce, [&](int64_t first, int64_t last) {
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
  const int64_t blocks = (size + kElementsAtOnce - 1) / kElementsAtOnce;
  Share(batch * blocks, 1, [&](int64_t task, int64_t) {
    const int64_t first = task % blocks * kElementsAtOnce;
    kernels_.dropout(args, task / blocks, first,
                     std::min(first + kElementsAtOnce, size));
  });
}

void CpuOps::Adamw(Stream& stream, const AdamwArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(
      args.gradient.elements(), kElementsAtOnce,
      [&](int64_t first, int64_t last) { kernels_.adamw(args, first, last); });
}

void CpuOps::Sgd(Stream& stream, const SgdArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  Share(args.gradient.elements(), kElementsAtOnce,
        [&](int64_t first, int64_t last) { kernels_.sgd(args, first, last); });
}

void CpuOps::SumSquares(Stream& stream, const SumSquaresArgs& args) {
  if (!host::EnterInlineOp(stream, args)) return;
  common::sync::MutexLock lock(&mutex_);
  const int64_t size = args.x.elements();
  const int64_t blocks = (size + kSumSquaresBlock - 1) / kSumSquaresBlock;
  double* sums = shared_scratch_.Doubles(blocks);
  Share(blocks, 8, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kSumSquaresBlock;
      sums[block] = kernels_.sum_squares(
          args.x.f32() + begin, std::min(kSumSquaresBlock, size - begin));
    }
  });
  *args.sum.f64() = std::accumulate(sums, sums + blocks, 0.0);
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
