#include "server/executor/activation_stash.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/model/layer.h"
#include "server/model/layout.h"

namespace penstock::server::executor {

using transport::EdgeKind;
using transport::EdgeRole;

struct ActivationStash::Layout {
  StashBytes bytes;
  device::Shape boundary;
  std::vector<Region> slots, held, gradients, edges;

  // Behind what `arena` has so far.
  static Region Add(int64_t& arena, int64_t bytes_each, int count) {
    const Region region = {
        .offset = arena, .bytes = model::Aligned(bytes_each), .count = count};
    arena += region.bytes * count;
    return region;
  }
};

ActivationStash::Layout ActivationStash::MakeLayout(
    const StageAssignment& assignment) {
  Layout layout;
  layout.boundary =
      device::Shape({assignment.shape.rows(), assignment.model.width});
  const int64_t boundary =
      layout.boundary.elements() * device::ElementBytes(model::kResidualType);
  StashBytes& bytes = layout.bytes;
  for (size_t i = 0; i < assignment.chunks.size(); ++i) {
    const AssignedChunk& chunk = assignment.chunks[i];
    const model::ChunkMemory memory =
        model::Chunk::Predict(assignment.chunk_options(i));
    layout.slots.push_back(
        Layout::Add(bytes.activation_slots, memory.slot, chunk.slots));
    layout.held.push_back(
        Layout::Add(bytes.activation_slots, memory.held, chunk.held_slots));
    bytes.workspace =
        std::max(bytes.workspace, model::Aligned(memory.workspace));
  }
  for (const AssignedChunk& chunk : assignment.chunks) {
    layout.gradients.push_back(Layout::Add(bytes.transfer_slots, boundary,
                                           chunk.local_gradient_slots));
  }
  for (const AssignedEdge& edge : assignment.edges) {
    const EdgeKind kind = edge.end.edge.kind;
    const bool tied =
        kind == EdgeKind::kTiedGradient || kind == EdgeKind::kTiedSum;
    int count = 0;
    if (!tied && edge.sends()) count = edge.send_buffers;
    if (kind == EdgeKind::kGradient && !edge.sends()) count = edge.end.capacity;
    layout.edges.push_back(Layout::Add(bytes.transfer_slots, boundary, count));
  }
  return layout;
}

StashBytes PredictStash(const StageAssignment& assignment) {
  return ActivationStash::MakeLayout(assignment).bytes;
}

absl::StatusOr<std::unique_ptr<ActivationStash>> ActivationStash::Create(
    device::Device& device, const StageAssignment& assignment) {
  Layout layout = MakeLayout(assignment);
  const StashBytes& bytes = layout.bytes;
  Arenas arenas;
  ASSIGN_OR_RETURN(arenas.activations,
                   device.Allocate(bytes.activation_slots,
                                   device::MemoryUse::kActivationSlots));
  ASSIGN_OR_RETURN(
      arenas.workspace,
      device.Allocate(bytes.workspace, device::MemoryUse::kWorkspace));
  ASSIGN_OR_RETURN(
      arenas.transfers,
      device.Allocate(bytes.transfer_slots, device::MemoryUse::kTransferSlots));
  return std::unique_ptr<ActivationStash>(
      new ActivationStash(std::move(layout), std::move(arenas)));
}

ActivationStash::ActivationStash(Layout layout, Arenas arenas)
    : bytes_(layout.bytes),
      boundary_(layout.boundary),
      slots_(std::move(layout.slots)),
      held_(std::move(layout.held)),
      gradients_(std::move(layout.gradients)),
      edges_(std::move(layout.edges)),
      arenas_(std::move(arenas)) {}

std::byte* ActivationStash::At(const device::Buffer& arena,
                               const Region& region, int index) {
  CHECK(index >= 0 && index < region.count)
      << "place " << index << " of " << region.count;
  return arena.data() + region.offset + index * region.bytes;
}

device::Tensor ActivationStash::BoundaryAt(const Region& region,
                                           int index) const {
  return device::Tensor(At(*arenas_.transfers, region, index),
                        model::kResidualType, boundary_);
}

std::byte* ActivationStash::slot(int chunk, int slot) const {
  return At(*arenas_.activations, slots_[chunk], slot);
}
std::byte* ActivationStash::held(int chunk, int place) const {
  return At(*arenas_.activations, held_[chunk], place);
}
device::Tensor ActivationStash::gradient_slot(int edge, int slot) const {
  return BoundaryAt(edges_[edge], slot);
}
device::Tensor ActivationStash::local_gradient(int chunk, int slot) const {
  return BoundaryAt(gradients_[chunk], slot);
}
device::Tensor ActivationStash::send_buffer(int edge, int buffer) const {
  return BoundaryAt(edges_[edge], buffer);
}

void ActivationStash::Add(int64_t bytes) {
  activation_bytes_ += bytes;
  peak_activation_bytes_ = std::max(peak_activation_bytes_, activation_bytes_);
}

void ActivationStash::Begin(const ProgramCommand& command) {
  if (command.op == v1::OP_FORWARD) {
    ++in_flight_;
    peak_in_flight_ = std::max(peak_in_flight_, in_flight_);
    Add(slots_[command.chunk].bytes);
  } else if (command.op == v1::OP_BACKWARD_INPUT) {
    Add(held_[command.chunk].bytes);
  }
}

void ActivationStash::End(const ProgramCommand& command) {
  if (!command.releases) return;
  --in_flight_;
  Add(-slots_[command.chunk].bytes);
  if (command.op == v1::OP_BACKWARD_WEIGHT) Add(-held_[command.chunk].bytes);
}

void ActivationStash::BeginStep() {
  CHECK_EQ(in_flight_, 0);
  peak_in_flight_ = 0;
  peak_activation_bytes_ = 0;
}

}  // namespace penstock::server::executor
