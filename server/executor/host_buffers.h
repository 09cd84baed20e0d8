// The pinned host memory that a step's inputs go in by and its losses come out
// by.
#ifndef PENSTOCK_SERVER_EXECUTOR_HOST_BUFFERS_H_
#define PENSTOCK_SERVER_EXECUTOR_HOST_BUFFERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/device.h"
#include "server/device/tensor.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/program.h"
#include "server/executor/stage_assignment.h"
#include "server/model/chunk.h"

namespace penstock::server::executor {

// One staging buffer for each stash slot, laid out as the slot's beginning.
// Thread-compatible: confined to the engine thread.
class HostInputs {
 public:
  // Borrows everything but the span's own memory. `source` may be null where no
  // chunk reads data.
  static absl::StatusOr<std::unique_ptr<HostInputs>> Create(
      device::Device& device, const StageAssignment& assignment,
      const std::vector<std::unique_ptr<model::Chunk>>& chunks,
      MicroBatchSource* source);

  // Reads the micro-batch of a forward into its staging buffer; blocks while
  // the copy before it is under way.
  absl::Status Fill(const Program& program, const ProgramCommand& command);
  // Enqueues the copy of what Fill() read into the command's stash slot.
  void Copy(device::Stream& stream, const ProgramCommand& command,
            std::byte* slot);

 private:
  struct Staging {
    std::unique_ptr<device::Buffer> buffer;
    std::unique_ptr<device::Event> copied;
  };

  HostInputs(device::Device& device, const StageAssignment& assignment,
             MicroBatchSource* source)
      : device_(device), assignment_(assignment), source_(source) {}

  device::Device& device_;
  const StageAssignment& assignment_;
  MicroBatchSource* const source_;
  std::vector<const model::Chunk*> chunks_;
  std::vector<std::vector<Staging>> staging_;  // (chunk, slot)
};

// Where the head writes losses: room for M micro-batches, one after the other.
// Thread-compatible: confined to the engine thread.
class LossBuffer {
 public:
  static absl::StatusOr<std::unique_ptr<LossBuffer>> Create(
      device::Device& device, const StageAssignment& assignment);
  // Device memory of Create().
  static int64_t PredictBytes(const StageAssignment& assignment);

  // Places for micro-batch `micro_batch` (mod M).
  device::Tensor sequence_loss(int micro_batch) const;   // f64 (batch)
  device::Tensor sequence_valid(int micro_batch) const;  // i64 (batch)

  void CopyToHost(device::Stream& stream);
  // The sums, in the order of sequences, of one micro-batch. REQUIRES: the
  // stream has passed CopyToHost().
  v1::MicroBatchLoss Sum(int micro_batch) const;

 private:
  LossBuffer(device::Device& device, const StageAssignment& assignment)
      : device_(device),
        batch_(assignment.shape.batch),
        micro_batches_(assignment.micro_batches) {}
  // Byte offsets of a micro-batch's losses and counts.
  int64_t LossOffset(int micro_batch) const;
  int64_t ValidOffset(int micro_batch) const;

  device::Device& device_;
  const int64_t batch_;
  const int64_t micro_batches_;
  std::unique_ptr<device::Buffer> device_memory_;
  std::unique_ptr<device::Buffer> host_memory_;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_HOST_BUFFERS_H_
