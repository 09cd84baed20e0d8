// What one rank is for one epoch: its chunks, their slots and its edges. The
// checked form of v1::Assignment; everything in this folder is built from it.
#ifndef PENSTOCK_SERVER_EXECUTOR_STAGE_ASSIGNMENT_H_
#define PENSTOCK_SERVER_EXECUTOR_STAGE_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/ops.h"
#include "server/executor/modelled_times.h"
#include "server/model/chunk.h"
#include "server/model/model_config.h"
#include "server/model/optimizer.h"
#include "server/model/parameters.h"
#include "server/transport/modelled/modelled_transport.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

// No edge, no chunk, no slot.
inline constexpr int kNone = -1;

// One virtual stage of this rank. The indices say where its inputs come from
// and where its outputs go: over an edge, or to a chunk of this rank.
struct AssignedChunk {
  int stage = 0;
  model::LayerRange range;
  int slots = 1;                 // Activations: micro-batch m uses m mod slots.
  int local_gradient_slots = 0;  // Gradients from `next_chunk`.
  int held_slots = 0;            // Between a split I and its W.
  ModelledTimes modelled_times;

  // Indices into StageAssignment::edges, or kNone.
  int activation_in = kNone;
  int activation_out = kNone;
  int gradient_in = kNone;
  int gradient_out = kNone;
  // Indices into StageAssignment::chunks, or kNone: the neighbours on this
  // rank.
  int previous_chunk = kNone;
  int next_chunk = kNone;
};

struct AssignedEdge {
  transport::EdgeOptions end;  // This rank's.
  int send_buffers = 1;        // Of the sender.

  bool sends() const { return end.role == transport::EdgeRole::kSource; }
};

// A plain value; immutable once made.
struct StageAssignment {
  int rank = 0;
  int ranks = 1;
  model::ModelConfig model;
  model::OptimizerConfig optimizer;
  model::BatchShape shape;  // Of one micro-batch.
  int micro_batches = 1;    // M
  model::Recompute recompute = model::Recompute::kNone;
  uint64_t seed = 0;
  std::vector<AssignedChunk> chunks;  // By stage, ascending.
  std::vector<AssignedEdge> edges;    // In the message's order.
  // Edges of a tied embedding whose head is on another rank, or kNone.
  int tied_gradient = kNone;
  int tied_sum = kNone;
  absl::Duration connect_deadline;
  absl::Duration command_deadline;
  // Set where the device models time.
  std::optional<transport::modelled::Wire> modelled_transfers;

  // The global index of the first sequence of a micro-batch (see
  // docs/numerics.md): training counts steps from 1, evaluation starts at 0.
  int64_t FirstTrainingSequence(int64_t step, int micro_batch) const {
    return ((step - 1) * micro_batches + micro_batch) * shape.batch;
  }
  int64_t FirstValidationSequence(int micro_batch) const {
    return micro_batch * shape.batch;
  }

  std::vector<model::LayerRange> ranges() const;
  model::ParameterStore::Options parameters() const;
  model::ChunkOptions chunk_options(int chunk) const;
  device::OpSizes op_sizes() const;
  transport::TransportOptions transport(int64_t epoch,
                                        const std::string& secret) const;
};

// The wire's model. InvalidArgument names the field and the rule.
absl::StatusOr<model::ModelConfig> DecodeModel(const v1::ModelConfig& from);

// InvalidArgument names the field, its value and the rule: numbers out of
// range; a stage twice; a chunk without layers; an edge that does not touch
// this rank, is given twice, or joins stages that are no neighbours; a
// neighbour that is neither on this rank nor behind an edge; tied edges where
// they do not belong or missing.
absl::StatusOr<StageAssignment> DecodeAssignment(
    const v1::Assignment& assignment);

// "2F3": operation and micro-batch of a virtual stage, as in schedules.
std::string CommandName(v1::Op op, int stage, int micro_batch);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_STAGE_ASSIGNMENT_H_
