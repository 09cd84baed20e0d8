#include "coordinator/dispatch/command_stream.h"

#include "common/log/log.h"
#include "coordinator/schedule/forward_order.h"

namespace penstock::coordinator::dispatch {
namespace {

using schedule::kNone;
using schedule::LoweredProgram;
using schedule::LoweredStep;
using schedule::Op;
using schedule::StepKind;

}  // namespace

v1::StepCommands TrainCommands(const LoweredProgram& program, int rank,
                               int64_t step, bool full_timings) {
  v1::StepCommands commands;
  commands.set_kind(v1::StepCommands::KIND_TRAIN);
  commands.set_step(step);
  commands.set_full_timings(full_timings);
  for (const LoweredStep& lowered : program.steps[rank]) {
    // Tied sums and the barrier follow from the assignment.
    if (lowered.kind != StepKind::kCompute) continue;
    v1::Command& command = *commands.add_commands();
    command.set_op(OpToProto(lowered.command.op));
    command.set_stage(lowered.command.stage);
    command.set_micro_batch(lowered.command.micro_batch);
    command.set_slot(lowered.stash_slot);
    command.set_receives(lowered.receive_edge != kNone);
    command.set_sends(lowered.send_edge != kNone);
    if (schedule::ProducesInputGradient(lowered.command.op) &&
        lowered.receive_slot != kNone) {
      command.set_gradient_slot(lowered.receive_slot);
    }
  }
  return commands;
}

v1::StepCommands EvaluateCommands(const LoweredProgram& program, int rank,
                                  int64_t step, int micro_batches, int group) {
  const schedule::Placement& placement = program.placement;
  v1::StepCommands commands;
  commands.set_kind(v1::StepCommands::KIND_EVALUATE);
  commands.set_step(step);
  for (const auto& [op, stage, micro_batch] :
       schedule::ForwardOrder(program, rank, micro_batches, group)) {
    v1::Command& command = *commands.add_commands();
    command.set_op(OpToProto(op));
    command.set_stage(stage);
    command.set_micro_batch(micro_batch);
    command.set_slot(micro_batch % program.stages[stage].slots);
    command.set_receives(stage > 0 && !placement.same_rank(stage - 1, stage));
    command.set_sends(stage + 1 < placement.stages() &&
                      !placement.same_rank(stage, stage + 1));
  }
  return commands;
}

bool CarriesFullTimings(int64_t step, int64_t steps) {
  return step <= 3 || step % 10 == 0 || step == steps;
}

v1::Op OpToProto(Op op) {
  switch (op) {
    case Op::kForward:
      return v1::OP_FORWARD;
    case Op::kBackward:
      return v1::OP_BACKWARD;
    case Op::kBackwardInput:
      return v1::OP_BACKWARD_INPUT;
    case Op::kBackwardWeight:
      return v1::OP_BACKWARD_WEIGHT;
  }
  CHECK(false) << "unknown operation";
  return v1::OP_UNSPECIFIED;
}

v1::Edge EdgeToProto(const schedule::Edge& edge) {
  v1::Edge proto;
  proto.set_source_stage(edge.source_stage);
  proto.set_target_stage(edge.target_stage);
  switch (edge.kind) {
    case schedule::EdgeKind::kActivation:
      proto.set_kind(v1::EDGE_KIND_ACTIVATION);
      break;
    case schedule::EdgeKind::kGradient:
      proto.set_kind(v1::EDGE_KIND_GRADIENT);
      break;
    case schedule::EdgeKind::kTiedGradient:
      proto.set_kind(v1::EDGE_KIND_TIED_GRADIENT);
      break;
    case schedule::EdgeKind::kTiedSum:
      proto.set_kind(v1::EDGE_KIND_TIED_SUM);
      break;
  }
  return proto;
}

}  // namespace penstock::coordinator::dispatch
