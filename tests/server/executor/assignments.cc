#include "tests/server/executor/assignments.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "coordinator/schedule/forward_order.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/named_schedules.h"
#include "tests/server/model/sequential_pipeline.h"

namespace penstock::testing {

namespace schedule = coordinator::schedule;
using schedule::LoweredProgram;
using schedule::LoweredStep;
using schedule::StepKind;

namespace {

v1::Op EncodeOp(schedule::Op op) {
  switch (op) {
    case schedule::Op::kForward:
      return v1::OP_FORWARD;
    case schedule::Op::kBackward:
      return v1::OP_BACKWARD;
    case schedule::Op::kBackwardInput:
      return v1::OP_BACKWARD_INPUT;
    case schedule::Op::kBackwardWeight:
      return v1::OP_BACKWARD_WEIGHT;
  }
  return v1::OP_UNSPECIFIED;
}

v1::EdgeKind EncodeKind(schedule::EdgeKind kind) {
  switch (kind) {
    case schedule::EdgeKind::kActivation:
      return v1::EDGE_KIND_ACTIVATION;
    case schedule::EdgeKind::kGradient:
      return v1::EDGE_KIND_GRADIENT;
    case schedule::EdgeKind::kTiedGradient:
      return v1::EDGE_KIND_TIED_GRADIENT;
    case schedule::EdgeKind::kTiedSum:
      return v1::EDGE_KIND_TIED_SUM;
  }
  return v1::EDGE_KIND_UNSPECIFIED;
}

v1::Chunk ChunkOf(const LoweredProgram& program, int stage,
                  const server::model::LayerRange& range) {
  v1::Chunk chunk;
  chunk.set_stage(stage);
  chunk.set_first_block(range.first_block);
  chunk.set_end_block(range.end_block);
  chunk.set_embedding(range.embedding);
  chunk.set_head(range.head);
  chunk.set_slots(program.stages[stage].slots);
  chunk.set_local_gradient_slots(program.stages[stage].local_gradient_slots);
  chunk.set_held_slots(program.stages[stage].held);
  return chunk;
}

}  // namespace

server::model::ModelConfig TinyModel() {
  return {.layers = 2,
          .width = 16,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn_width = 32,
          .context = 8,
          .vocab = 19,
          .dropout = 0.1,
          .init_std = 0.2};
}

v1::ModelConfig EncodeModel(const server::model::ModelConfig& model) {
  v1::ModelConfig to;
  to.set_family(model.family == server::model::Family::kGpt2
                    ? v1::ModelConfig::FAMILY_GPT2
                    : v1::ModelConfig::FAMILY_LLAMA);
  to.set_layers(model.layers);
  to.set_width(model.width);
  to.set_heads(model.heads);
  to.set_kv_heads(model.kv_heads);
  to.set_head_dim(model.head_dim);
  to.set_ffn_width(model.ffn_width);
  to.set_context(model.context);
  to.set_vocab(model.vocab);
  to.set_tied_embeddings(model.tied);
  to.set_dropout(model.dropout);
  to.set_norm_epsilon(model.norm_eps);
  to.set_rope_theta(model.rope_theta);
  to.set_init_std(model.init_std);
  CHECK(model.rope_scaling == server::model::RopeScaling());
  return to;
}

v1::OptimizerConfig AdamwSettings() {
  v1::OptimizerConfig config;
  config.set_kind(v1::OptimizerConfig::KIND_ADAMW);
  config.set_beta1(0.9);
  config.set_beta2(0.95);
  config.set_epsilon(1e-8);
  config.set_weight_decay(0.1);
  return config;
}

std::vector<v1::Assignment> Assignments(const LoweredProgram& program,
                                        const AssignmentOptions& options) {
  const std::vector<server::model::LayerRange> ranges =
      CutEvenly(options.model.layers, program.placement.stages());
  std::vector<v1::Assignment> assignments;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    v1::Assignment to;
    to.set_job_id("job-00000");
    to.set_rank(rank);
    to.set_ranks(program.ranks());
    *to.mutable_model() = EncodeModel(options.model);
    *to.mutable_optimizer() = options.optimizer;
    for (int stage : schedule::StagesOfRank(program.placement, rank)) {
      *to.add_chunks() = ChunkOf(program, stage, ranges[stage]);
    }
    for (const schedule::Edge& from : program.edges) {
      if (from.source_rank != rank && from.target_rank != rank) continue;
      const bool source = from.source_rank == rank;
      v1::EdgeAssignment& edge = *to.add_edges();
      edge.mutable_edge()->set_source_stage(from.source_stage);
      edge.mutable_edge()->set_target_stage(from.target_stage);
      edge.mutable_edge()->set_kind(EncodeKind(from.kind));
      edge.set_source(source);
      const int peer = source ? from.target_rank : from.source_rank;
      edge.set_peer_name(absl::StrCat("stage-", peer));
      if (!options.addresses.empty()) {
        edge.set_peer_address(options.addresses[peer]);
      }
      edge.set_capacity(from.capacity);
      edge.set_send_buffers(from.send_buffers);
    }
    to.set_micro_batch(options.micro_batch);
    to.set_micro_batches(program.micro_batches);
    to.set_sequence_length(options.sequence_length);
    to.set_seed(options.seed);
    to.set_full_recompute(options.full_recompute);
    to.mutable_connect_deadline()->set_seconds(10);
    to.mutable_command_deadline()->set_seconds(options.command_deadline_ms /
                                               1000);
    to.mutable_command_deadline()->set_nanos(options.command_deadline_ms %
                                             1000 * 1'000'000);
    assignments.push_back(std::move(to));
  }
  return assignments;
}

v1::StepCommands TrainCommands(const LoweredProgram& program, int rank,
                               int64_t step) {
  v1::StepCommands commands;
  commands.set_kind(v1::StepCommands::KIND_TRAIN);
  commands.set_step(step);
  for (const LoweredStep& from : program.steps[rank]) {
    if (from.kind != StepKind::kCompute) continue;
    v1::Command& to = *commands.add_commands();
    to.set_op(EncodeOp(from.command.op));
    to.set_stage(from.command.stage);
    to.set_micro_batch(from.command.micro_batch);
    to.set_slot(from.stash_slot);
    to.set_receives(from.receive_edge != schedule::kNone);
    to.set_sends(from.send_edge != schedule::kNone);
    if (schedule::ProducesInputGradient(from.command.op)) {
      to.set_gradient_slot(std::max(from.receive_slot, 0));
    }
  }
  return commands;
}

v1::StepCommands EvaluateCommands(const LoweredProgram& program, int rank,
                                  int64_t step, int micro_batches) {
  v1::StepCommands commands;
  commands.set_kind(v1::StepCommands::KIND_EVALUATE);
  commands.set_step(step);
  const schedule::Placement& placement = program.placement;
  for (const auto& [op, stage, m] : schedule::ForwardOrder(
           program, rank, micro_batches, schedule::ForwardGroup(program))) {
    v1::Command& to = *commands.add_commands();
    to.set_op(EncodeOp(op));
    to.set_stage(stage);
    to.set_micro_batch(m);
    to.set_slot(m % program.stages[stage].slots);
    to.set_receives(stage > 0 && !placement.same_rank(stage - 1, stage));
    to.set_sends(stage + 1 < placement.stages() &&
                 !placement.same_rank(stage, stage + 1));
  }
  return commands;
}

LoweredProgram LowerNamed(const ScheduleOptions& options) {
  auto made = schedule::Generate(options.name,
                                 {.ranks = options.ranks,
                                  .chunks = options.chunks,
                                  .micro_batches = options.micro_batches});
  CHECK_OK(made.status());
  auto lowered = schedule::Lower(*made, {.tied_embedding = options.tied,
                                         .send_buffers = options.send_buffers});
  CHECK_OK(lowered.status());
  return *std::move(lowered);
}

std::vector<ScheduleOptions> EveryCell(int micro_batches) {
  std::vector<ScheduleOptions> all;
  for (const schedule::NamedSchedule& named : schedule::kNamedSchedules) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      for (int chunks = 1; chunks <= 2; ++chunks) {
        const schedule::Shape shape{
            .ranks = ranks, .chunks = chunks, .micro_batches = micro_batches};
        if (!schedule::Generate(named.name, shape).ok()) continue;
        all.push_back({.name = std::string(named.name),
                       .ranks = ranks,
                       .chunks = chunks,
                       .micro_batches = micro_batches});
      }
    }
  }
  return all;
}

}  // namespace penstock::testing
