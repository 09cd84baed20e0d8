#include "server/executor/stage_assignment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/ids/op_letter.h"
#include "common/status/status_macros.h"
#include "common/time/proto_time.h"
#include "server/executor/edge_proto.h"
#include "server/model/op_sizes.h"

namespace penstock::server::executor {
namespace {

using transport::EdgeKind;
using transport::EdgeRole;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("assignment: ", parts...));
}

}  // namespace

absl::StatusOr<model::ModelConfig> DecodeModel(const v1::ModelConfig& from) {
  model::ModelConfig to;
  switch (from.family()) {
    case v1::ModelConfig::FAMILY_GPT2:
      to.family = model::Family::kGpt2;
      break;
    case v1::ModelConfig::FAMILY_LLAMA:
      to.family = model::Family::kLlama;
      break;
    default:
      return Wrong("model.family ", from.family(), " is not known");
  }
  to.layers = from.layers();
  to.width = from.width();
  to.heads = from.heads();
  to.kv_heads = from.kv_heads();
  to.head_dim = from.head_dim();
  to.ffn_width = from.ffn_width();
  to.context = from.context();
  to.vocab = from.vocab();
  to.tied = from.tied_embeddings();
  to.dropout = from.dropout();
  to.norm_eps = from.norm_epsilon();
  to.rope_theta = from.rope_theta();
  to.init_std = from.init_std();
  const v1::ModelConfig::RopeScaling& scaling = from.rope_scaling();
  switch (scaling.kind()) {
    case v1::ModelConfig::RopeScaling::KIND_UNSPECIFIED:
      break;
    case v1::ModelConfig::RopeScaling::KIND_LINEAR:
      to.rope_scaling.kind = model::RopeScalingKind::kLinear;
      to.rope_scaling.factor = scaling.factor();
      break;
    case v1::ModelConfig::RopeScaling::KIND_LLAMA3:
      to.rope_scaling = {.kind = model::RopeScalingKind::kLlama3,
                         .factor = scaling.factor(),
                         .low_freq_factor = scaling.low_freq_factor(),
                         .high_freq_factor = scaling.high_freq_factor(),
                         .original_context = scaling.original_context()};
      break;
    default:
      return Wrong("model.rope_scaling.kind ", scaling.kind(), " is not known");
  }
  RETURN_IF_ERROR(model::Validate(to));
  return to;
}

namespace {

absl::StatusOr<model::OptimizerConfig> DecodeOptimizer(
    const v1::OptimizerConfig& from) {
  model::OptimizerConfig to;
  switch (from.kind()) {
    case v1::OptimizerConfig::KIND_ADAMW:
      to.kind = model::OptimizerKind::kAdamw;
      break;
    case v1::OptimizerConfig::KIND_SGD:
      to.kind = model::OptimizerKind::kSgd;
      break;
    default:
      return Wrong("optimizer.kind ", from.kind(), " is not known");
  }
  to.beta1 = from.beta1();
  to.beta2 = from.beta2();
  to.epsilon = static_cast<float>(from.epsilon());
  to.momentum = static_cast<float>(from.momentum());
  to.weight_decay = static_cast<float>(from.weight_decay());
  return to;
}

absl::Status DecodeChunks(const v1::Assignment& from, StageAssignment& to) {
  if (from.chunks().empty()) return Wrong("chunks is empty");
  for (const v1::Chunk& chunk : from.chunks()) {
    const std::string name = absl::StrCat("chunk of stage ", chunk.stage());
    if (chunk.stage() < 0) return Wrong(name, ": below 0");
    if (chunk.slots() < 1) {
      return Wrong(name, ": slots ", chunk.slots(), ", at least 1");
    }
    if (chunk.local_gradient_slots() < 0 || chunk.held_slots() < 0) {
      return Wrong(name, ": local_gradient_slots ",
                   chunk.local_gradient_slots(), ", held_slots ",
                   chunk.held_slots(), ", at least 0");
    }
    const int64_t first = chunk.first_block(), end = chunk.end_block();
    if (first < 0 || end < first || end > to.model.layers) {
      return Wrong(name, ": blocks [", first, ", ", end, ") of ",
                   to.model.layers);
    }
    if (first == end && !chunk.embedding() && !chunk.head()) {
      return Wrong(name, ": has no layers");
    }
    if (chunk.embedding() != (chunk.stage() == 0)) {
      return Wrong(name, ": stage 0, and no other, has the embedding");
    }
    ASSIGN_OR_RETURN(const ModelledTimes times,
                     DecodeModelledTimes(chunk.modelled_times()));
    to.chunks.push_back({.stage = chunk.stage(),
                         .range = {.embedding = chunk.embedding(),
                                   .first_block = first,
                                   .end_block = end,
                                   .head = chunk.head()},
                         .slots = chunk.slots(),
                         .local_gradient_slots = chunk.local_gradient_slots(),
                         .held_slots = chunk.held_slots(),
                         .modelled_times = times});
  }
  std::sort(to.chunks.begin(), to.chunks.end(),
            [](const AssignedChunk& a, const AssignedChunk& b) {
              return a.stage < b.stage;
            });
  for (size_t i = 1; i < to.chunks.size(); ++i) {
    const AssignedChunk& before = to.chunks[i - 1];
    if (before.stage == to.chunks[i].stage) {
      return Wrong("stage ", before.stage, " is given twice");
    }
    if (before.range.head) {
      return Wrong("stage ", before.stage, " has the head, but stage ",
                   to.chunks[i].stage, " follows");
    }
    if (before.stage + 1 == to.chunks[i].stage) {
      to.chunks[i - 1].next_chunk = i;
      to.chunks[i].previous_chunk = i - 1;
    }
  }
  return absl::OkStatus();
}

// The chunk of this rank's end of the edge, or kNone.
int ChunkOf(const StageAssignment& assignment, const AssignedEdge& edge) {
  const int stage =
      edge.sends() ? edge.end.edge.source_stage : edge.end.edge.target_stage;
  for (size_t i = 0; i < assignment.chunks.size(); ++i) {
    if (assignment.chunks[i].stage == stage) return i;
  }
  return kNone;
}

// Whether the edge's stages are ones that its kind may join.
bool Joins(const transport::Edge& edge) {
  switch (edge.kind) {
    case EdgeKind::kActivation:
      return edge.target_stage == edge.source_stage + 1;
    case EdgeKind::kGradient:
      return edge.target_stage == edge.source_stage - 1;
    case EdgeKind::kTiedGradient:
      return edge.target_stage == 0 && edge.source_stage > 0;
    case EdgeKind::kTiedSum:
      return edge.source_stage == 0 && edge.target_stage > 0;
  }
  return false;
}

// Where the chunk, or the rank, keeps the index of this edge.
int& EdgePlace(StageAssignment& to, const AssignedEdge& edge, int chunk) {
  const bool source = edge.sends();
  AssignedChunk& here = to.chunks[chunk];
  switch (edge.end.edge.kind) {
    case EdgeKind::kActivation:
      return source ? here.activation_out : here.activation_in;
    case EdgeKind::kGradient:
      return source ? here.gradient_out : here.gradient_in;
    case EdgeKind::kTiedGradient:
      return to.tied_gradient;
    case EdgeKind::kTiedSum:
      break;
  }
  return to.tied_sum;
}

absl::Status DecodeEdges(const v1::Assignment& from, StageAssignment& to) {
  for (const v1::EdgeAssignment& given : from.edges()) {
    const auto kind = FromProto(given.edge().kind());
    if (!kind) return Wrong("edge kind ", given.edge().kind(), " is not known");
    const AssignedEdge edge = {
        .end = {.edge = {.source_stage = given.edge().source_stage(),
                         .target_stage = given.edge().target_stage(),
                         .kind = *kind},
                .role = given.source() ? EdgeRole::kSource : EdgeRole::kTarget,
                .capacity = given.capacity(),
                .peer = given.peer_name(),
                .peer_address = given.peer_address()},
        .send_buffers = given.send_buffers()};
    const std::string name = absl::StrCat("edge ", ToString(edge.end.edge));
    if (!Joins(edge.end.edge)) return Wrong(name, ": joins the wrong stages");
    if (edge.end.capacity < 1 || edge.send_buffers < 1) {
      return Wrong(name, ": capacity ", edge.end.capacity, ", send_buffers ",
                   edge.send_buffers, ", at least 1");
    }
    const int chunk = ChunkOf(to, edge);
    if (chunk == kNone) {
      return Wrong(name, ": its ", given.source() ? "source" : "target",
                   " is no stage of rank ", to.rank);
    }
    const bool tied =
        *kind == EdgeKind::kTiedGradient || *kind == EdgeKind::kTiedSum;
    if (tied && !to.model.tied) {
      return Wrong(name, ": the model's embedding is not tied");
    }
    if (tied && edge.end.capacity != 1) {
      return Wrong(name, ": capacity ", edge.end.capacity,
                   ", but there is 1 slot");
    }
    const bool head_end = (*kind == EdgeKind::kTiedGradient) == given.source();
    if (tied && head_end && !to.chunks[chunk].range.head) {
      return Wrong(name, ": stage ", to.chunks[chunk].stage,
                   " does not have the head");
    }
    int& place = EdgePlace(to, edge, chunk);
    if (place != kNone) return Wrong(name, ": is given twice");
    place = to.edges.size();
    to.edges.push_back(edge);
  }
  return absl::OkStatus();
}

// Every input and output has exactly one place to come from or go to.
absl::Status CheckNeighbours(const StageAssignment& to) {
  for (const AssignedChunk& chunk : to.chunks) {
    const std::string name = absl::StrCat("stage ", chunk.stage);
    const auto check = [&name](bool wanted, int local, int edge,
                               absl::string_view what) {
      const bool has_edge = edge != kNone, has_local = local != kNone;
      if (has_edge && (has_local || !wanted)) {
        return Wrong(name, ": has an edge for ", what, " and needs none");
      }
      if (wanted && !has_edge && !has_local) {
        return Wrong(name, ": has no edge for ", what);
      }
      return absl::OkStatus();
    };
    const bool first = chunk.range.embedding, last = chunk.range.head;
    RETURN_IF_ERROR(check(!first, chunk.previous_chunk, chunk.activation_in,
                          "its input activation"));
    RETURN_IF_ERROR(check(!first, chunk.previous_chunk, chunk.gradient_out,
                          "its input gradient"));
    RETURN_IF_ERROR(check(!last, chunk.next_chunk, chunk.activation_out,
                          "its output activation"));
    RETURN_IF_ERROR(check(!last, chunk.next_chunk, chunk.gradient_in,
                          "its output gradient"));
    const bool hands_over = chunk.next_chunk != kNone;
    if (hands_over != (chunk.local_gradient_slots > 0)) {
      return Wrong(name, ": local_gradient_slots ", chunk.local_gradient_slots,
                   hands_over ? ", but the next stage is on this rank"
                              : ", but the next stage is on another rank");
    }
    if (chunk.activation_in != kNone &&
        to.edges[chunk.activation_in].end.capacity != chunk.slots) {
      return Wrong(name, ": ", chunk.slots, " slots, but capacity ",
                   to.edges[chunk.activation_in].end.capacity,
                   " on the edge that lands in them");
    }
  }
  const bool first = to.chunks.front().range.embedding;
  const bool last = to.chunks.back().range.head;
  const bool tied_edges = to.model.tied && first != last;
  if ((to.tied_gradient != kNone) != tied_edges ||
      (to.tied_sum != kNone) != tied_edges) {
    return Wrong("tied edges: ",
                 tied_edges ? "missing, though embedding and head are on "
                              "different ranks"
                            : "given, but there is nothing to exchange");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<model::LayerRange> StageAssignment::ranges() const {
  std::vector<model::LayerRange> ranges;
  for (const AssignedChunk& chunk : chunks) ranges.push_back(chunk.range);
  return ranges;
}

model::ParameterStore::Options StageAssignment::parameters() const {
  return {.model = model, .ranges = ranges(), .optimizer = optimizer};
}

model::ChunkOptions StageAssignment::chunk_options(int chunk) const {
  return {.model = model,
          .range = chunks[chunk].range,
          .shape = shape,
          .recompute = recompute,
          .seed = seed};
}

device::OpSizes StageAssignment::op_sizes() const {
  return model::SizesOfOps(model, ranges(), shape);
}

transport::TransportOptions StageAssignment::transport(
    int64_t epoch, const std::string& secret) const {
  transport::TransportOptions options = {.epoch = epoch, .secret = secret};
  // Of time that is modelled none goes into acknowledging.
  if (modelled_transfers.has_value()) {
    options.acks = transport::Acks::kImmediate;
  }
  for (const AssignedEdge& edge : edges) {
    options.edges.push_back(edge.end);
  }
  return options;
}

absl::StatusOr<StageAssignment> DecodeAssignment(
    const v1::Assignment& assignment) {
  StageAssignment to;
  to.rank = assignment.rank();
  to.ranks = assignment.ranks();
  if (to.rank < 0 || to.rank >= to.ranks) {
    return Wrong("rank ", to.rank, " of ", to.ranks);
  }
  ASSIGN_OR_RETURN(to.model, DecodeModel(assignment.model()));
  ASSIGN_OR_RETURN(to.optimizer, DecodeOptimizer(assignment.optimizer()));
  to.shape = {.batch = assignment.micro_batch(),
              .seq = assignment.sequence_length()};
  if (to.shape.batch < 1) {
    return Wrong("micro_batch ", to.shape.batch, ", at least 1");
  }
  if (to.shape.seq < 1 || to.shape.seq > to.model.context) {
    return Wrong("sequence_length ", to.shape.seq, ", from 1 to the context, ",
                 to.model.context);
  }
  to.micro_batches = assignment.micro_batches();
  if (to.micro_batches < 1) {
    return Wrong("micro_batches ", to.micro_batches, ", at least 1");
  }
  to.recompute = assignment.full_recompute() ? model::Recompute::kFull
                                             : model::Recompute::kNone;
  to.seed = assignment.seed();
  to.connect_deadline = common::time::FromProto(assignment.connect_deadline());
  to.command_deadline = common::time::FromProto(assignment.command_deadline());
  if (to.connect_deadline <= absl::ZeroDuration() ||
      to.command_deadline <= absl::ZeroDuration()) {
    return Wrong("connect_deadline and command_deadline must be above 0");
  }
  if (assignment.has_modelled_transfers()) {
    ASSIGN_OR_RETURN(to.modelled_transfers,
                     DecodeModelledTransfers(assignment.modelled_transfers()));
  }
  RETURN_IF_ERROR(DecodeChunks(assignment, to));
  RETURN_IF_ERROR(DecodeEdges(assignment, to));
  RETURN_IF_ERROR(CheckNeighbours(to));
  return to;
}

std::string CommandName(v1::Op op, int stage, int micro_batch) {
  return absl::StrCat(stage, common::ids::OpLetter(op), micro_batch);
}

}  // namespace penstock::server::executor
