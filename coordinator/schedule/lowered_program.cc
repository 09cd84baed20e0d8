#include "coordinator/schedule/lowered_program.h"

#include "absl/strings/str_cat.h"
#include "common/ids/edge.h"

namespace penstock::coordinator::schedule {

int CommandsBefore(const LoweredProgram& program, int rank, int position) {
  int commands = 0;
  for (int p = 0; p < position; ++p) {
    commands += program.steps[rank][p].kind == StepKind::kCompute;
  }
  return commands;
}

std::string ToString(const Edge& edge) {
  return common::ids::ToString({.source_stage = edge.source_stage,
                                .target_stage = edge.target_stage,
                                .kind = edge.kind});
}

std::string ToString(const LoweredStep& step) {
  switch (step.kind) {
    case StepKind::kCompute:
      return ToString(step.command);
    case StepKind::kTiedSend:
      return "tied-send";
    case StepKind::kTiedReduce:
      return "tied-reduce";
    case StepKind::kTiedReceive:
      return "tied-receive";
    case StepKind::kReplicaReduce:
      return absl::StrCat("replica-reduce ", step.command.stage);
    case StepKind::kBarrier:
      return "barrier";
  }
  return "step";
}

}  // namespace penstock::coordinator::schedule
