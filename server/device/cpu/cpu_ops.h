// The ops of the cpu device: cut into blocks here, computed by the kernels of
// one instruction-set level (kernels.h).
//
// How an op is cut depends on its shape alone, never on the number of threads,
// and every sum that crosses blocks is made in block order by the caller.
#ifndef PENSTOCK_SERVER_DEVICE_CPU_CPU_OPS_H_
#define PENSTOCK_SERVER_DEVICE_CPU_CPU_OPS_H_

#include <functional>
#include <memory>
#include <vector>

#include "common/sync/mutex.h"
#include "server/device/cpu/kernels.h"
#include "server/device/cpu/scratch.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/host/host_memory.h"
#include "server/device/ops.h"

namespace penstock::server::device::cpu {

// Thread-safe: concurrent ops take turns.
class CpuOps final : public Ops {
 public:
  // REQUIRES: the machine has `isa`; threads >= 1, the caller's included.
  // `memory`: where the device counts, for scratch memory. ResourceExhausted
  // where the system has not that many threads.
  static absl::StatusOr<std::unique_ptr<CpuOps>> Create(
      Isa isa, int threads, const host::HostMemory& memory);

  int64_t PackedWeightBytes(int64_t in, int64_t out) const override;
  int64_t ScratchBytes(const OpSizes& sizes) const override;
  absl::Status ReserveScratch(const OpSizes& sizes) override;
  void PackWeight(Stream& stream, const Weight& weight) override;
  void LinearForward(Stream& stream, const LinearForwardArgs& args) override;
  void LinearBackwardInput(Stream& stream,
                           const LinearBackwardInputArgs& args) override;
  void LinearBackwardWeight(Stream& stream,
                            const LinearBackwardWeightArgs& args) override;
  void EmbeddingForward(Stream& stream,
                        const EmbeddingForwardArgs& args) override;
  void EmbeddingBackward(Stream& stream,
                         const EmbeddingBackwardArgs& args) override;
  void LayerNormForward(Stream& stream,
                        const LayerNormForwardArgs& args) override;
  void LayerNormBackwardInput(Stream& stream,
                              const LayerNormBackwardInputArgs& args) override;
  void LayerNormBackwardWeight(
      Stream& stream, const LayerNormBackwardWeightArgs& args) override;
  void Rope(Stream& stream, const RopeArgs& args) override;
  void AttentionForward(Stream& stream,
                        const AttentionForwardArgs& args) override;
  void AttentionBackward(Stream& stream,
                         const AttentionBackwardArgs& args) override;
  void GeluForward(Stream& stream, const GeluForwardArgs& args) override;
  void Multiply(Stream& stream, const MultiplyArgs& args) override;
  void SwigluForward(Stream& stream, const SwigluForwardArgs& args) override;
  void SwigluBackward(Stream& stream, const SwigluBackwardArgs& args) override;
  void Add(Stream& stream, const AddArgs& args) override;
  void ApplyDropout(Stream& stream, const DropoutArgs& args) override;
  void CrossEntropyForward(Stream& stream,
                           const CrossEntropyForwardArgs& args) override;
  void CrossEntropyBackward(Stream& stream,
                            const CrossEntropyBackwardArgs& args) override;
  void Adamw(Stream& stream, const AdamwArgs& args) override;
  void Sgd(Stream& stream, const SgdArgs& args) override;
  void SumSquares(Stream& stream, const SumSquaresArgs& args) override;
  void Fill(Stream& stream, const FillArgs& args) override;
  void Copy(Stream& stream, const CopyArgs& args) override;

 private:
  // Floats of scratch memory: of the op, and of each thread.
  struct ScratchFloats {
    int64_t shared = 0, each = 0;
  };
  CpuOps(Isa isa, std::unique_ptr<ThreadPool> pool,
         const host::HostMemory& memory);

  ScratchFloats ScratchOf(const OpSizes& sizes) const;

  // Floats of a packed B (k, n).
  int64_t PackedFloats(int64_t k, int64_t n) const;
  void PackB(const Operand& b, int64_t k, int64_t n, float* to)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All m rows of C.
  void RunGemm(const Gemm& gemm, int64_t m)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // work(first, last) over [0, items), `unit` items at a time.
  void Share(int64_t items, int64_t unit,
             const std::function<void(int64_t first, int64_t last)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The tasks of attention, each with scratch memory of so many floats.
  void ShareTasks(int64_t tasks, int64_t floats,
                  const std::function<void(int64_t task, float* scratch)>& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Kernels kernels_;

  common::sync::Mutex mutex_;  // One op at a time.
  const std::unique_ptr<ThreadPool> pool_ ABSL_PT_GUARDED_BY(mutex_);
  std::vector<Scratch> thread_scratch_;  // One each; used by their threads.
  Scratch shared_scratch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::device::cpu

#endif  // PENSTOCK_SERVER_DEVICE_CPU_CPU_OPS_H_
