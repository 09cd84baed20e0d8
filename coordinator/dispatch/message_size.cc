#include "coordinator/dispatch/message_size.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/message_limit.h"
#include "common/status/key_path.h"
#include "common/status/status_macros.h"
#include "coordinator/planner/parameter_sizes.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {
namespace {

// Names, acknowledgements, and the Hello that repeats a report.
constexpr int64_t kRest = 64 * 1024;
// "transformer.h.65535.attn.c_attn.weight" and its kin, with room.
constexpr int64_t kNameBytes = 64;
// Larger than any that is measured or counted.
constexpr int64_t kNanoseconds = int64_t{1} << 49;  // Six days.
constexpr int64_t kTokens = int64_t{1} << 48;
constexpr int64_t kElements = int64_t{1} << 48;

// An element of a repeated field: its tag and length before it.
int64_t ElementBytes(const google::protobuf::MessageLite& element) {
  return static_cast<int64_t>(element.ByteSizeLong()) + 2;
}

absl::Status Check(const StepSize& size) {
  const int64_t bytes = std::max(CommandsBytes(size), ReportBytes(size));
  if (bytes <= RoomForStep()) return absl::OkStatus();
  return common::status::WithKeyPath(
      absl::InvalidArgumentError(absl::StrCat(
          size.micro_batches, " micro-batches a step are too many: a rank's ",
          size.commands, " commands and their times take up to ", bytes,
          " bytes, and a message has room for ", RoomForStep(),
          "; raise batch.micro_batch (about ",
          size.micro_batches * RoomForStep() / bytes, " micro-batches fit)")),
      "batch.micro_batch");
}

StepSize SizeOf(const planner::PlanRequest& request, int64_t commands) {
  return {.commands = commands,
          .micro_batches = request.micro_batches,
          .stages = int64_t{request.ranks} * request.chunks};
}

absl::Status CheckParametersFit(const planner::PlanRequest& request,
                                const planner::Plan& plan) {
  const schedule::Placement& placement = plan.program.placement;
  planner::ModelShape most = request.model;
  std::vector<int64_t> blocks(placement.ranks, 0);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    blocks[placement.rank_of(stage)] += plan.stages[stage].blocks();
  }
  most.layers = *std::max_element(blocks.begin(), blocks.end());
  const int64_t room = common::rpc::kMaxControlMessageBytes - kStepBytes;
  const int64_t bytes = ParameterListBytes(planner::CountParameters(most));
  if (bytes <= room) return absl::OkStatus();
  return common::status::WithKeyPath(
      absl::InvalidArgumentError(
          absl::StrCat(most.layers,
                       " layers on one stage are too many: what it says of "
                       "their parameters takes up to ",
                       bytes, " bytes, and a message has room for ", room,
                       "; about ", most.layers * room / bytes,
                       " layers a stage fit, so raise pipeline.stages")),
      "model.layers");
}

}  // namespace

int64_t CommandsBytes(const StepSize& size) {
  v1::Command largest;
  largest.set_op(v1::OP_BACKWARD_WEIGHT);
  largest.set_stage(static_cast<int>(size.stages));
  largest.set_micro_batch(static_cast<int>(size.micro_batches));
  largest.set_slot(static_cast<int>(size.micro_batches));
  largest.set_receives(true);
  largest.set_sends(true);
  largest.set_gradient_slot(static_cast<int>(size.micro_batches));
  return size.commands * ElementBytes(largest);
}

int64_t ReportBytes(const StepSize& size) {
  v1::OpTiming timing;
  timing.set_op(v1::OP_BACKWARD_WEIGHT);
  timing.set_stage(static_cast<int>(size.stages));
  timing.set_micro_batch(static_cast<int>(size.micro_batches));
  timing.set_start_ns(kNanoseconds);
  timing.set_end_ns(kNanoseconds);
  v1::MicroBatchLoss loss;
  loss.set_micro_batch(static_cast<int>(size.micro_batches));
  loss.set_loss_sum(1);
  loss.set_valid_tokens(kTokens);
  return size.commands * ElementBytes(timing) +
         size.micro_batches * ElementBytes(loss);
}

int64_t RoomForStep() { return kStepBytes - kRest; }

int64_t ParameterListBytes(int64_t parameters) {
  const std::string name(kNameBytes, 'n');
  v1::TensorSum sum;
  sum.set_canonical_index(parameters);
  sum.set_sum_squares(1);
  v1::ParameterInfo info;
  info.set_name(name);
  info.set_canonical_index(parameters);
  info.set_elements(kElements);
  info.set_owned(true);
  v1::TensorDigest digest;
  digest.set_name(name);
  digest.set_sha256(std::string(32, 'd'));
  const int64_t end = ElementBytes(digest) + kNameBytes + 2;
  return parameters * std::max({ElementBytes(sum), ElementBytes(info), end});
}

absl::Status CheckStepFits(const planner::PlanRequest& request) {
  // A forward and a backward of each micro-batch in each chunk.
  return Check(SizeOf(request, int64_t{2} * planner::FewestChunks(request) *
                                   request.micro_batches));
}

absl::Status CheckFits(const planner::PlanRequest& request,
                       const planner::Plan& plan) {
  RETURN_IF_ERROR(CheckParametersFit(request, plan));
  size_t most = 0;
  for (const auto& steps : plan.program.steps) {
    most = std::max(most, steps.size());
  }
  return Check(SizeOf(request, static_cast<int64_t>(most)));
}

}  // namespace penstock::coordinator::dispatch
