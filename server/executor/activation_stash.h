// The static memory of one rank's pipeline: laid out once per assignment, so
// that a step allocates nothing and what was predicted is what is there.
//
//   chunk   slots x slot bytes (the input lies in the slot), held places
//   edge    receiver: gradient slots; sender: send buffers
//   chunk   local gradient slots, where the next stage is on this rank
//   rank    one workspace, the largest that a chunk asks for
//
// Activations of an activation edge land in the chunk's slots; tied edges use
// the gradient buffers of the ParameterStore. Every block is a multiple of 64
// bytes, and so is every sum of them.
//
// The counters follow the commands in the order in which they are enqueued,
// which is the order in which they run: an activation counts from the start of
// its F to the end of its B or W (with what a split backward holds in addition,
// from its I). An input that was received ahead is in a slot
// that does not count yet.
#ifndef PENSTOCK_SERVER_EXECUTOR_ACTIVATION_STASH_H_
#define PENSTOCK_SERVER_EXECUTOR_ACTIVATION_STASH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/tensor.h"
#include "server/executor/program.h"
#include "server/executor/stage_assignment.h"

namespace penstock::server::executor {

// Bytes, as MemoryBytes of the wire names them.
struct StashBytes {
  int64_t activation_slots = 0;  // Slots and held places of all chunks.
  int64_t workspace = 0;
  int64_t transfer_slots = 0;  // Gradient slots and send buffers.

  int64_t total() const {
    return activation_slots + workspace + transfer_slots;
  }
  friend bool operator==(const StashBytes&, const StashBytes&) = default;
};

// From shapes alone: no device, no allocation.
StashBytes PredictStash(const StageAssignment& assignment);

// Thread-compatible: confined to the engine thread.
class ActivationStash {
 public:
  // Allocates PredictStash(), one block a use. ResourceExhausted when the
  // device has not that much.
  static absl::StatusOr<std::unique_ptr<ActivationStash>> Create(
      device::Device& device, const StageAssignment& assignment);

  StashBytes bytes() const { return bytes_; }

  std::byte* slot(int chunk, int slot) const;
  std::byte* held(int chunk, int place) const;
  std::byte* workspace() const { return arenas_.workspace->data(); }
  // (rows, width) of the residual type. `edge`: a gradient edge that this rank
  // receives from.
  device::Tensor gradient_slot(int edge, int slot) const;
  device::Tensor local_gradient(int chunk, int slot) const;
  // `edge`: an activation or gradient edge that this rank sends on.
  device::Tensor send_buffer(int edge, int buffer) const;

  // --- Counters.

  // REQUIRES: called for each command, before and after it is enqueued.
  void Begin(const ProgramCommand& command);
  void End(const ProgramCommand& command);
  // Starts the peaks afresh. REQUIRES: nothing in flight.
  void BeginStep();

  int in_flight() const { return in_flight_; }
  int64_t activation_bytes() const { return activation_bytes_; }
  int peak_in_flight() const { return peak_in_flight_; }
  int64_t peak_activation_bytes() const { return peak_activation_bytes_; }

 private:
  // `count` blocks of `bytes` each, from `offset` of their arena.
  struct Region {
    int64_t offset = 0;
    int64_t bytes = 0;
    int count = 0;
  };
  struct Layout;
  struct Arenas {
    std::unique_ptr<device::Buffer> activations, workspace, transfers;
  };

  ActivationStash(Layout layout, Arenas arenas);
  void Add(int64_t bytes);
  static std::byte* At(const device::Buffer& arena, const Region& region,
                       int index);
  device::Tensor BoundaryAt(const Region& region, int index) const;

  static Layout MakeLayout(const StageAssignment& assignment);
  friend StashBytes PredictStash(const StageAssignment& assignment);

  const StashBytes bytes_;
  const device::Shape boundary_;
  // Of the activations:
  const std::vector<Region> slots_;  // By chunk.
  const std::vector<Region> held_;   // By chunk.
  // Of the transfers:
  const std::vector<Region> gradients_;  // By chunk: local.
  const std::vector<Region> edges_;      // Received slots or send buffers.
  const Arenas arenas_;

  int in_flight_ = 0;
  int64_t activation_bytes_ = 0;
  int peak_in_flight_ = 0;
  int64_t peak_activation_bytes_ = 0;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_ACTIVATION_STASH_H_
