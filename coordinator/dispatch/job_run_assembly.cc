// JobRun from QUEUED to the first command: phases 1 to 5.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ids/result_names.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/time/duration_text.h"
#include "coordinator/dispatch/deadlines.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/shared_memory.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/dispatch/summary.h"
#include "coordinator/planner/device_sizes.h"
#include "coordinator/planner/refusal.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/resolved_yaml.h"

namespace penstock::coordinator::dispatch {

using v1::Job;
using v1::Occurrence;

bool JobRun::TryStart(const RunContext& context) {
  CHECK(queued());
  Crew crew = ChooseCrew(job_.spec, context.registry, context.links);
  const int wanted = static_cast<int>(job_.spec.pipeline.stages.value_or(1));
  if (static_cast<int>(crew.members.size()) < wanted) return false;

  const absl::Status numerics = AgreeOnNumerics(context.registry, crew);
  log_.Move(Job::STATE_PLANNING, context.now, context.actions);
  Job& job = log_.mutable_job();
  job.set_device(crew.device_kind);
  if (!numerics.ok()) {
    FailWith(numerics, context);
    return true;
  }
  crew_ = std::move(crew);
  if (job_.spec.device == spec::DeviceKind::kAuto) {
    log_.Occur({.kind = "NOTE",
                .message = absl::StrCat("device: ", crew_.device_kind,
                                        ", which all chosen stages have")},
               context.now, context.actions);
  }
  for (const CrewMember& member : crew_.members) {
    job.add_stage_names(member.name);
  }
  log_.Publish(context.now, context.actions);
  ++context.epoch;
  checked_.assign(ranks(), std::nullopt);
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::string& name = crew_.members[rank].name;
    CHECK_OK(context.registry.Assign(name, job.id(), rank, crew_.numerics_id));
    context.links.Begin(name, context.epoch);
    v1::CoordinatorMessage message;
    *message.mutable_check_inputs() =
        CheckInputsFor(job_, job.id(), map_, rank);
    if (!Tell(rank, std::move(message), context)) {
      return true;
    }
  }
  phase_ = Phase::kChecking;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.check_inputs_deadline;
  return true;
}

void JobRun::OnInputsChecked(int rank, const v1::InputsChecked& checked,
                             const RunContext& context) {
  if (!InPhase(Phase::kChecking) || checked_[rank].has_value()) return;
  checked_[rank] = checked;
  const bool all =
      std::all_of(checked_.begin(), checked_.end(),
                  [](const auto& entry) { return entry.has_value(); });
  // One failure is enough; the others would only repeat it.
  if (!all && !checked.has_failure()) return;
  std::vector<CheckedInputs> answers;
  for (int r = 0; r < ranks(); ++r) {
    if (!checked_[r].has_value()) continue;
    answers.push_back({.stage_name = crew_.members[r].name,
                       .host = crew_.members[r].host,
                       .reads_data = ReadsData(map_.placement, r),
                       .answer = *checked_[r]});
  }
  absl::StatusOr<ResolvedInputs> inputs =
      ResolveInputs(job_, answers, request_.chunks);
  if (!inputs.ok()) {
    FailWith(inputs.status(), context);
    return;
  }
  inputs_ = *std::move(inputs);
  inputs_.spec.device =
      *spec::ValueOf(spec::kDeviceKindNames, crew_.device_kind);
  OrderPlan(context);
}

void JobRun::OrderPlan(const RunContext& context) {
  SetDecidedByData(inputs_.spec, request_);
  request_.packed_bytes = planner::PackedBytesOf(crew_.numerics_id);
  request_.scratch_bytes = planner::ScratchBytesOf(crew_.numerics_id);
  for (int rank = 0; rank < ranks(); ++rank) {
    request_.threads.push_back(
        std::max(1, ThreadsOf(inputs_.spec, crew_, rank)));
  }
  for (const CrewMember& member : crew_.members) {
    const int64_t bytes = member.device.memory_bytes();
    if (bytes <= 0) continue;
    request_.device_memory =
        std::min(bytes, request_.device_memory.value_or(bytes));
  }
  phase_ = Phase::kPlanning;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.planning_deadline;
  context.actions.push_back(
      MakePlan{.job_id = log_.job().id(), .request = request_});
}

void JobRun::PlanMade(absl::StatusOr<planner::Plan> plan,
                      const RunContext& context) {
  if (!InPhase(Phase::kPlanning)) return;  // It is stopping.
  const absl::Status accepted = plan.ok() ? AcceptPlan(*std::move(plan))
                                          : PlaceRefusal(job_, plan.status());
  if (!accepted.ok()) {
    FailWith(accepted, context);
    return;
  }
  MakeOutput(context);
}

absl::Status JobRun::AcceptPlan(planner::Plan plan) {
  std::vector<int64_t> needs;
  for (const planner::RankMemory& memory : plan.memory) {
    needs.push_back(memory.total());
  }
  if (const absl::Status fits = CheckSharedMemory(crew_, needs); !fits.ok()) {
    return PlaceRefusal(job_, fits);
  }
  plan_ = std::move(plan);

  // Nothing is dropped: the stages' blocks are the model's.
  int64_t blocks = 0;
  std::vector<int64_t> partition;
  for (const planner::StageLayers& layers : plan_->stages) {
    blocks += layers.blocks();
    partition.push_back(layers.blocks());
  }
  CHECK_EQ(blocks, inputs_.spec.model.layers);
  inputs_.spec.pipeline.partition = partition;
  fingerprint_ = Fingerprint(inputs_.spec, inputs_.data_digest);
  return absl::OkStatus();
}

void JobRun::Assemble(const RunContext& context) {
  Job& job = log_.mutable_job();
  job.set_steps(inputs_.steps);
  job.set_micro_batches(plan_->program.micro_batches);
  job.set_predicted_bubble_rate(plan_->predicted.bubble_rate);
  job.set_resolved_yaml(spec::ToResolvedYaml(inputs_.spec));
  for (const std::string& what : inputs_.ignored) {
    log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
                .kind = "IGNORED",
                .message = what},
               context.now, context.actions);
  }
  log_.Write(common::ids::kResolvedJobFile, job.resolved_yaml(),
             WriteJobFile::Mode::kReplace, context.actions);
  log_.Move(Job::STATE_ASSEMBLING, context.now, context.actions);

  std::string secret;
  for (int i = 0; i < 4; ++i) {
    const uint64_t word = context.options.random();
    secret.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  command_deadline_ =
      CommandDeadline(context.options, *plan_, crew_.device_kind,
                      inputs_.evaluation_micro_batches);
  const AssignmentRequest request = {.spec = inputs_.spec,
                                     .job_id = job.id(),
                                     .plan = *plan_,
                                     .crew = crew_,
                                     .epoch_secret = secret,
                                     .options = context.options,
                                     .command_deadline = command_deadline_};
  ready_.assign(ranks(), std::nullopt);
  for (int rank = 0; rank < ranks(); ++rank) {
    v1::CoordinatorMessage message;
    *message.mutable_assignment() = AssignmentFor(request, rank);
    if (!Tell(rank, std::move(message), context)) return;
  }
  phase_ = Phase::kAssembling;
  since_ = moved_ = context.now.monotonic;
  deadline_ = since_ + context.options.assembly_stall_deadline;
}

absl::Status JobRun::OnReady(int rank, const v1::StageReady& ready,
                             const RunContext& context) {
  if (!InPhase(Phase::kAssembling) || ready_[rank].has_value()) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckMemory(ready.memory()));
  ready_[rank] = ready;
  moved_ = context.now.monotonic;
  CHECK_OK(
      context.registry.Move(crew_.members[rank].name, v1::Stage::STATE_READY));
  std::vector<v1::StageReady> all;
  for (const auto& entry : ready_) {
    if (!entry.has_value()) return absl::OkStatus();
    all.push_back(*entry);
  }
  if (const absl::Status covered = CheckCoverage(request_.model, crew_, all);
      !covered.ok()) {
    FailWith(covered, context);
    return absl::OkStatus();
  }
  for (int r = 0; r < ranks(); ++r) CompareMemory(r, all[r].memory(), context);
  StartSteps(context);
  return absl::OkStatus();
}

void JobRun::StageGone(const v1::Cause& cause, const RunContext& context) {
  CHECK(queued());
  Fail(Job::STATE_REASON_STAGE_LOST, cause, context);
}

void JobRun::KeepWaiting(const RunContext& context) {
  const absl::Duration waited = context.now.monotonic - since_;
  const std::string text = absl::StrCat(
      waited > absl::ZeroDuration()
          ? absl::StrCat("waited ", common::time::DurationText(waited), " for ")
          : "waits for ",
      DescribeWanted(job_.spec, context.registry, context.links,
                     context.now.monotonic));
  const auto end = since_ + context.options.queue_deadline;
  if (context.now.monotonic >= end) {
    log_.OpenFolder(context.actions);
    FailWith(common::status::WithReason(absl::DeadlineExceededError(text),
                                        common::status::kReasonNoStages),
             context);
    return;
  }
  log_.Occur({.kind = "WAITING_FOR_STAGES", .message = text}, context.now,
             context.actions);
  deadline_ =
      std::min(context.now.monotonic + context.options.waiting_notice, end);
}

void JobRun::CompareMemory(int rank, const v1::MemoryBytes& measured,
                           const RunContext& context) {
  const planner::RankMemory& predicted = plan_->memory[rank];
  if (TotalBytes(measured) == predicted.total()) return;
  std::vector<std::string> parts;
  const auto compare = [&](absl::string_view part, int64_t got, int64_t plan) {
    if (got == plan) return;
    parts.push_back(absl::StrCat(part, " ", got, " instead of ", plan));
  };
  compare("parameters", measured.parameters(), predicted.parameters);
  compare("gradients", measured.gradients(), predicted.gradients);
  compare("optimizer", measured.optimizer(), predicted.optimizer);
  compare("activation slots", measured.activation_slots(),
          predicted.activation_slots);
  compare("workspace", measured.workspace(), predicted.workspace);
  compare("transfer slots", measured.transfer_slots(),
          predicted.transfer_slots);
  log_.Occur({.severity = Occurrence::SEVERITY_WARNING,
              .kind = "MEMORY_PREDICTION",
              .message = absl::StrCat(
                  crew_.members[rank].name, " allocated ", TotalBytes(measured),
                  " bytes; the plan predicted ", predicted.total(), " (",
                  absl::StrJoin(parts, ", "), ")"),
              .stage_name = crew_.members[rank].name},
             context.now, context.actions);
}

}  // namespace penstock::coordinator::dispatch
