#include "server/device/cpu/cpu_ops.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/device/cpu/block_sizes.h"
#include "server/device/host/inline_stream.h"

namespace penstock::server::device::cpu {
namespace {

// The packed W, for x * W; W transposed follows it.
float* ForwardPart(const Weight& weight) {
  CHECK(weight.packed.present()) << "weight was not packed";
  return weight.packed.f32();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOps>> CpuOps::Create(
    Isa isa, int threads, const host::HostMemory& memory) {
  ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool,
                   ThreadPool::Create(threads));
  return std::unique_ptr<CpuOps>(new CpuOps(isa, std::move(pool), memory));
}

CpuOps::CpuOps(Isa isa, std::unique_ptr<ThreadPool> pool,
               const host::HostMemory& memory)
    : kernels_(KernelsFor(isa)),
      pool_(std::move(pool)),
      shared_scratch_(memory) {
  const int threads = pool_->threads();
  thread_scratch_.reserve(threads);
  for (int i = 0; i < threads; ++i) thread_scratch_.emplace_back(memory);
}

CpuOps::ScratchFloats CpuOps::ScratchOf(const OpSizes& sizes) const {
  ScratchFloats floats;
  floats.each = kernels_.blocks.packed_a_floats();
  if (sizes.attention.batch > 0) {
    floats.each = std::max(
        {floats.each, kernels_.attention_forward_floats(sizes.attention),
         kernels_.attention_backward_floats(sizes.attention)});
  }
  for (const OpSizes::Product& product : sizes.products) {
    const bool in_out = product.layout == WeightLayout::kInOut;
    floats.shared =
        std::max(floats.shared,
                 PackedFloats(product.rows, in_out ? product.out : product.in));
  }
  // Doubles: of rows, of blocks.
  const int64_t blocks =
      (sizes.summed_elements + kSumSquaresBlock - 1) / kSumSquaresBlock;
  floats.shared = std::max({floats.shared, 2 * sizes.logit_rows, 2 * blocks});
  return floats;
}

int64_t CpuOps::ScratchBytes(const OpSizes& sizes) const {
  const ScratchFloats floats = ScratchOf(sizes);
  return Scratch::Bytes(floats.shared) +
         static_cast<int64_t>(thread_scratch_.size()) *
             Scratch::Bytes(floats.each);
}

absl::Status CpuOps::ReserveScratch(const OpSizes& sizes) {
  const ScratchFloats floats = ScratchOf(sizes);
  common::sync::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(shared_scratch_.Reserve(floats.shared));
  for (Scratch& scratch : thread_scratch_) {
    RETURN_IF_ERROR(scratch.Reserve(floats.each));
  }
  return absl::OkStatus();
}

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
  pool_->Run((items + unit - 1) / unit, [&](int64_t block, int) {
    work(block * unit, std::min(items, (block + 1) * unit));
  });
}

void CpuOps::ShareTasks(int64_t tasks, int64_t floats,
                        const std::function<void(int64_t, float*)>& work) {
  pool_->Run(tasks, [&](int64_t task, int thread) {
    work(task, thread_scratch_[thread].Floats(floats));
  });
}

int64_t CpuOps::PackedWeightBytes(int64_t in, int64_t out) const {
  return (PackedFloats(in, out) + PackedFloats(out, in)) *
         static_cast<int64_t>(sizeof(float));
}

void CpuOps::PackWeight(Stream& stream, const Weight& weight) {
  if (!stream.status().ok()) return;
  SetFlushDenormals();
  common::sync::MutexLock lock(&mutex_);
  const int64_t in = weight.in(), out = weight.out();
  CHECK_EQ(weight.packed.bytes(), PackedWeightBytes(in, out));
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
  Share(args.dy.columns(), kColumnsAtOnce, [&](int64_t first, int64_t last) {
    kernels_.column_sums(args.dy, args.accumulate, first, last,
                         args.dbias.f32());
  });
}

}  // namespace penstock::server::device::cpu
