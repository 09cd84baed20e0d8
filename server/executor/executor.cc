#include "server/executor/executor.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/sync/thread.h"
#include "common/time/duration_text.h"
#include "server/device/compute_thread.h"
#include "server/executor/edge_proto.h"
#include "server/executor/measured_memory.h"

namespace penstock::server::executor {

using common::sync::MutexLock;

namespace {

// A command fails that is at the head for this many times as long as any before
// it was, and for command_deadline.
constexpr double kSlowestFactor = 3;

absl::Status OutOfTurn(absl::string_view what, int64_t step, int64_t next) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, " of step ", step, " is out of turn: step ", next, " is next"));
}

}  // namespace

Executor::Executor(const StageAssignment& assignment, const Options& options,
                   Deps deps)
    : assignment_(assignment),
      options_(options),
      deps_({.device = deps.device,
             .parameters = deps.parameters,
             .source = deps.source,
             .writer = deps.writer,
             .clock = deps.clock,
             .listener = deps.listener}),
      board_(*deps.clock),
      transport_(std::move(deps.transport)),
      queued_step_(options.step),
      applied_step_(options.step) {}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    const StageAssignment& assignment, const Options& options, Deps deps) {
  std::unique_ptr<Executor> executor(
      new Executor(assignment, options, std::move(deps)));
  RETURN_IF_ERROR(executor->Start());
  return executor;
}

absl::Status Executor::Start() {
  ASSIGN_OR_RETURN(compute_, deps_.device->CreateStream());
  // Also mends weights whose packing an aborted epoch left half done.
  RETURN_IF_ERROR(deps_.parameters->ReturnTo(*compute_, options_.step));
  ASSIGN_OR_RETURN(
      runner_, StepRunner::Create(assignment_, {.device = deps_.device,
                                                .compute = compute_.get(),
                                                .parameters = deps_.parameters,
                                                .transport = transport_.get(),
                                                .source = deps_.source,
                                                .board = &board_,
                                                .clock = deps_.clock,
                                                .epoch = options_.epoch}));
  RETURN_IF_ERROR(compute_->Synchronize(absl::InfiniteFuture()));
  transport_->OnFailure([this](const transport::Failure& failure) {
    Fail(failure.status, common::status::kReasonEdgeBroken, failure.edge);
  });
  ASSIGN_OR_RETURN(engine_, common::sync::StartThread([this] { Engine(); }));
  return absl::OkStatus();
}

v1::MemoryBytes Executor::PredictMemory(const device::Ops& ops,
                                        const StageAssignment& assignment) {
  v1::MemoryBytes bytes = StepRunner::Predict(ops, assignment);
  const model::ParameterMemory parameters =
      model::ParameterStore::Predict(ops, assignment.parameters());
  bytes.set_parameters(parameters.weights + parameters.packed +
                       parameters.step);
  bytes.set_gradients(parameters.gradients);
  bytes.set_optimizer(parameters.optimizer);
  return bytes;
}

Executor::~Executor() {
  Abort(absl::CancelledError("the executor was destroyed"));
  if (engine_.joinable()) engine_.join();
  // What the stream still holds ends by itself, since its waits have failed;
  // some of it calls the transport.
  if (compute_ != nullptr) {
    compute_->Synchronize(absl::InfiniteFuture()).IgnoreError();
  }
  transport_.reset();
}

absl::Status Executor::Enqueue(const v1::StepCommands& commands,
                               common::time::MonotonicTime came) {
  ASSIGN_OR_RETURN(Program program, LowerCommands(assignment_, commands));
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(stopped_);
  if (ends_) return absl::FailedPreconditionError("commands after END");
  if (program.trains()) {
    if (program.step != queued_step_ + 1) {
      return OutOfTurn("TRAIN", program.step, queued_step_ + 1);
    }
    queued_step_ = program.step;
  } else if (program.step != queued_step_) {
    return OutOfTurn("EVALUATE", program.step, queued_step_);
  }
  work_.push_back({.item = std::move(program), .came = came});
  return absl::OkStatus();
}

absl::Status Executor::Enqueue(const v1::End& end,
                               common::time::MonotonicTime came) {
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(stopped_);
  if (ends_) return absl::FailedPreconditionError("END after END");
  ends_ = true;
  work_.push_back({.item = end, .came = came});
  return absl::OkStatus();
}

absl::Status Executor::Enqueue(const v1::ReleaseStep& release,
                               common::time::MonotonicTime came) {
  if (release.decision() != v1::ReleaseStep::DECISION_APPLY &&
      release.decision() != v1::ReleaseStep::DECISION_SKIP) {
    return absl::InvalidArgumentError(
        absl::StrCat("release of step ", release.step(), ": decision ",
                     release.decision(), " is not known"));
  }
  MutexLock lock(&mutex_);
  RETURN_IF_ERROR(stopped_);
  if (!at_barrier_ || release_.has_value() ||
      release.step() != applied_step_ + 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "release of step ", release.step(), ", but ",
        at_barrier_ && !release_.has_value()
            ? absl::StrCat("step ", applied_step_ + 1, " is at the barrier")
            : "no step is at the barrier"));
  }
  release_ = Release{.step = release, .came = came};
  return absl::OkStatus();
}

void Executor::Abort(const absl::Status& cause) {
  CHECK(!cause.ok()) << "Abort needs a cause";
  {
    MutexLock lock(&mutex_);
    if (stopped_.ok()) stopped_ = cause;
    work_.clear();
  }
  if (transport_ != nullptr) transport_->Abort(cause);
}

absl::Status Executor::Stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

void Executor::Engine() {
  // With a time of its own it computes next to nothing, and moves bytes while
  // it is held.
  if (!compute_->modelled_now().has_value()) device::BecomeComputeThread();
  while (std::optional<Work> work = NextWork()) {
    const auto* program = std::get_if<Program>(&work->item);
    const absl::Status status = program != nullptr
                                    ? Run(*program, work->came)
                                    : Run(std::get<v1::End>(work->item));
    if (status.ok()) continue;
    // What a failed transport did to the stream is not the cause.
    const transport::Failure cause = transport_->failure();
    if (cause.status.ok()) {
      Fail(status, common::status::Reason(status), std::nullopt);
    } else {
      Fail(cause.status, common::status::kReasonEdgeBroken, cause.edge);
    }
    return;
  }
}

std::optional<Executor::Work> Executor::NextWork() {
  transport_->StepAside();
  MutexLock lock(&mutex_);
  working_ = false;
  const auto ready = [this] {
    mutex_.AssertHeld();
    return !stopped_.ok() || !work_.empty();
  };
  mutex_.Await(absl::Condition(&ready));
  if (!stopped_.ok()) return std::nullopt;
  std::optional<Work> work = std::move(work_.front());
  work_.pop_front();
  working_ = true;
  return work;
}

absl::Status Executor::Run(const Program& program,
                           common::time::MonotonicTime came) {
  const auto stopped = [this] { return Stopped(); };
  if (!program.trains()) {
    ASSIGN_OR_RETURN(const v1::EvalReport report,
                     runner_->Evaluate(program, came, stopped));
    if (runner_->has_head()) deps_.listener->OnEvalReport(report);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::StepReport report,
                   runner_->Train(program, came, stopped));
  {
    MutexLock lock(&mutex_);
    at_barrier_ = true;
    peak_activation_bytes_ = report.peak_activation_bytes();
  }
  deps_.listener->OnStepReport(report);
  ASSIGN_OR_RETURN(const Release release, AwaitRelease());
  ASSIGN_OR_RETURN(const v1::ApplyAck ack,
                   runner_->Apply(release.step, release.came));
  {
    MutexLock lock(&mutex_);
    applied_step_ = release.step.step();
  }
  deps_.listener->OnApplyAck(ack);
  return absl::OkStatus();
}

absl::StatusOr<Executor::Release> Executor::AwaitRelease() {
  transport_->StepAside();
  MutexLock lock(&mutex_);
  const auto ready = [this] {
    mutex_.AssertHeld();
    return !stopped_.ok() || release_.has_value();
  };
  mutex_.Await(absl::Condition(&ready));
  at_barrier_ = false;
  RETURN_IF_ERROR(stopped_);
  Release release = *std::move(release_);
  release_.reset();
  return release;
}

absl::Status Executor::Run(const v1::End& end) {
  board_.Add(
      {.name = "end", .step = deps_.parameters->step(), .has_deadline = false});
  board_.Started();
  v1::EndReport report;
  // Large models take their time: each tensor that is hashed or written shows
  // that it passes, and an abort does not wait for them all.
  const std::function<absl::Status()> stopped = [this] {
    board_.GotOn();
    return Stopped();
  };
  ASSIGN_OR_RETURN(
      const auto digests,
      deps_.parameters->Digests(*compute_, absl::InfiniteFuture(), stopped));
  for (const model::ParameterStore::TensorDigest& digest : digests) {
    v1::TensorDigest& to = *report.add_digests();
    to.set_name(digest.name);
    to.set_sha256(digest.sha256.data(), digest.sha256.size());
  }
  if (!end.model_directory().empty()) {
    CHECK(deps_.writer != nullptr);
    ASSIGN_OR_RETURN(const std::vector<std::string> tensors,
                     deps_.writer->Write({.end = end,
                                          .parameters = *deps_.parameters,
                                          .stream = *compute_,
                                          .stopped = stopped}));
    report.set_shard_file(end.shard_file());
    for (const std::string& name : tensors) {
      report.add_shard_tensors(name);
    }
  }
  *report.mutable_peak_memory() = PeakMemory(deps_.device->memory());
  // The orderly end comes before the report: once all have reported, ranks go
  // away in any order, and none is taken for a failure by its neighbours.
  RETURN_IF_ERROR(transport_->Close(absl::InfiniteFuture()));
  board_.Ended();
  deps_.listener->OnEndReport(report);
  return absl::OkStatus();
}

void Executor::Fail(const absl::Status& failure, absl::string_view reason,
                    const std::optional<transport::Edge>& edge) {
  v1::StageFailure message;
  {
    MutexLock lock(&mutex_);
    if (!stopped_.ok()) return;
    stopped_ = failure;
    work_.clear();
    message.set_step(applied_step_ + 1);
  }
  message.set_epoch(options_.epoch);
  *message.mutable_cause() = common::rpc::ToCause(
      common::status::WithReason(failure, reason), options_.stage_name);
  if (edge.has_value()) *message.mutable_edge() = ToProto(*edge);
  deps_.listener->OnFailure(message);
}

std::string Executor::WaitsFor(const HeadCommand& head) const {
  if (head.waits_for == kNone) return "";
  const AssignedEdge& edge = assignment_.edges[head.waits_for];
  const std::string name = ToString(edge.end.edge);
  return edge.sends() ? absl::StrCat(edge.end.peer, " to take ", name)
                      : absl::StrCat(name, " from ", edge.end.peer);
}

absl::Duration Executor::CheckDeadline() {
  // A machine that needed long before may need as long again.
  const absl::Duration slowest = board_.slowest();
  const absl::Duration limit =
      std::max(assignment_.command_deadline, kSlowestFactor * slowest);
  const std::optional<HeadCommand> head = board_.head();
  if (!head.has_value() || !head->has_deadline || !Stopped().ok()) {
    return limit;
  }
  if (head->age < limit) return limit - head->age;
  const std::string waits_for = WaitsFor(*head);
  const absl::Status failure = absl::DeadlineExceededError(absl::StrCat(
      Describe(*head), " has been at the head of the queue for ",
      common::time::DurationText(head->age), ", ",
      limit == assignment_.command_deadline
          ? absl::StrCat("command_deadline is ", absl::FormatDuration(limit))
          : absl::StrCat(kSlowestFactor, " times the slowest command before (",
                         common::time::DurationText(slowest), ") is ",
                         common::time::DurationText(limit)),
      ": it ",
      waits_for.empty() ? std::string("computes")
                        : absl::StrCat("waits for ", waits_for)));
  Fail(failure,
       waits_for.empty() ? common::status::kReasonCommandTimeout
                         : common::status::kReasonTransportTimeout,
       head->waits_for == kNone
           ? std::nullopt
           : std::optional(assignment_.edges[head->waits_for].end.edge));
  transport_->Abort(failure);
  return limit;
}

ExecutorStatus Executor::status() const {
  ExecutorStatus status;
  status.head = board_.head();
  if (status.head.has_value()) {
    status.waiting_for = WaitsFor(*status.head);
    if (status.head->waits_for != kNone) {
      status.awaited =
          ToProto(assignment_.edges[status.head->waits_for].end.edge);
    }
  }
  status.progress = board_.progress();
  status.activation_bytes = board_.activation_bytes();
  MutexLock lock(&mutex_);
  status.applied_step = applied_step_;
  const bool working = working_ && stopped_.ok();
  status.queued = static_cast<int>(work_.size()) + (working ? 1 : 0);
  status.stopped = stopped_;
  status.peak_activation_bytes = peak_activation_bytes_;
  return status;
}

}  // namespace penstock::server::executor
