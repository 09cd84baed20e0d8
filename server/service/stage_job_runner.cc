#include "server/service/stage_job_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/time/proto_time.h"
#include "server/service/output_probe.h"

namespace penstock::server::service {
namespace {

using common::sync::MutexLock;

// What a device says of memory and threads that it has not knows neither stage
// nor job.
absl::Status WithRemedy(const absl::Status& status,
                        const std::string& stage_name) {
  const std::string reason = common::status::Reason(status);
  if (!absl::IsResourceExhausted(status) ||
      (!reason.empty() && reason != common::status::kReasonOutOfMemory)) {
    return status;
  }
  // With a reason it says itself what to do (common/sync/thread.h).
  return common::status::WithReason(
      absl::Status(
          status.code(),
          absl::StrCat(stage_name, ": ", status.message(),
                       reason.empty()
                           ? "; use more stages, pipeline.recompute: full or a "
                             "smaller batch.micro_batch, or free memory on its "
                             "host"
                           : "")),
      common::status::kReasonOutOfMemory);
}

}  // namespace

// The job that is there now, if any. It lives as long as this, which must be
// short, and blocks for nothing.
class StageJobRunner::Use {
 public:
  explicit Use(const StageJobRunner& runner) : runner_(runner) {
    MutexLock lock(&runner_.mutex_);
    job_ = runner_.job_.get();
    if (job_ != nullptr) ++runner_.uses_;
  }
  ~Use() {
    MutexLock lock(&runner_.mutex_);
    if (job_ != nullptr) --runner_.uses_;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  StageJob* operator->() const { return job_; }
  StageJob* get() const { return job_; }

 private:
  const StageJobRunner& runner_;
  StageJob* job_;
};

StageJobRunner::StageJobRunner(const StageResources& resources, Report report)
    : resources_(resources), report_(std::move(report)), inputs_([this] {
        return Aborted(working_for_) ? absl::CancelledError("the job is over")
                                     : absl::OkStatus();
      }) {}

StageJobRunner::~StageJobRunner() {
  Abort({.epoch = INT64_MAX,
         .cause = absl::CancelledError("the stage daemon ends")});
}

void StageJobRunner::CheckInputs(int64_t epoch, v1::CheckInputs request) {
  Post(epoch, [this, epoch, request = std::move(request)] {
    v1::StageMessage message;
    *message.mutable_inputs_checked() =
        service::CheckInputs(request, resources_.stage_name, inputs_);
    if (!Aborted(epoch)) report_(epoch, std::move(message));
  });
}

void StageJobRunner::ProbeOutput(int64_t epoch, v1::ProbeOutput request) {
  Post(epoch, [this, epoch, request = std::move(request)] {
    v1::StageMessage message;
    *message.mutable_output_probed() =
        service::ProbeOutput(request, resources_.stage_name);
    report_(epoch, std::move(message));
  });
}

void StageJobRunner::Assemble(int64_t epoch, v1::Assignment assignment) {
  Post(epoch, [this, epoch, assignment = std::move(assignment)] {
    {
      MutexLock lock(&mutex_);
      if (epoch < aborted_below_) return;
      state_ = v1::Stage::STATE_ASSIGNED;
    }
    FreeJob(epoch + 1);  // Where there is one still, nobody aborted it.
    absl::StatusOr<std::unique_ptr<StageJob>> made =
        StageJob::Create(resources_, assignment, epoch, inputs_, report_);
    if (!made.ok()) {
      ReportFailure(epoch, WithRemedy(made.status(), resources_.stage_name),
                    nullptr);
      return;
    }
    StageJob* const job = made->get();
    {
      // From here on an Abort frees whoever waits for peers.
      MutexLock lock(&mutex_);
      if (epoch < aborted_below_) return;
      job_ = *std::move(made);
    }
    absl::StatusOr<v1::StageReady> ready = job->Connect();
    if (!ready.ok()) {
      ReportFailure(epoch, ready.status(), job);
      return;
    }
    v1::StageMessage message;
    *message.mutable_ready() = *std::move(ready);
    {
      MutexLock lock(&mutex_);
      if (epoch < aborted_below_) return;
      state_ = v1::Stage::STATE_READY;
    }
    report_(epoch, std::move(message));
  });
}

void StageJobRunner::Run(int64_t epoch, RunAction work) {
  if (Aborted(epoch)) return;
  const Use job(*this);
  const absl::Status status =
      job.get() != nullptr
          ? job->Run(work)
          : absl::FailedPreconditionError(
                "commands came before the assignment was ready");
  if (!status.ok()) {
    ReportFailure(epoch, status, job.get());
    return;
  }
  MutexLock lock(&mutex_);
  if (epoch >= aborted_below_) state_ = v1::Stage::STATE_RUNNING;
}

void StageJobRunner::Abort(const AbortAction& abort) {
  {
    MutexLock lock(&mutex_);
    aborted_below_ = std::max(aborted_below_, abort.epoch);
  }
  if (const Use job(*this);
      job.get() != nullptr && job->epoch() < abort.epoch) {
    job->Abort(abort.cause.ok() ? absl::CancelledError("the job is over")
                                : abort.cause);
  }
  worker_.Post([this, abort] {
    FreeJob(abort.epoch);
    {
      MutexLock lock(&mutex_);
      state_ = v1::Stage::STATE_REGISTERED;
      // The end of a job, and a user's wish, are no errors.
      if (!abort.cause.ok() && !absl::IsCancelled(abort.cause)) {
        last_error_ = common::rpc::ToCause(abort.cause, resources_.stage_name);
      }
    }
    inputs_.Reset();
    v1::StageMessage message;
    message.mutable_aborted()->set_epoch(abort.epoch);
    report_(abort.epoch, std::move(message));
  });
}

bool StageJobRunner::Aborted(int64_t epoch) const {
  MutexLock lock(&mutex_);
  return epoch < aborted_below_;
}

void StageJobRunner::Post(int64_t epoch, std::function<void()> work) {
  worker_.Post([this, epoch, work = std::move(work)] {
    if (Aborted(epoch)) return;
    working_for_ = epoch;
    work();
  });
}

void StageJobRunner::FreeJob(int64_t epoch) {
  std::unique_ptr<StageJob> job;
  {
    MutexLock lock(&mutex_);
    if (job_ == nullptr || job_->epoch() >= epoch) return;
    job = std::move(job_);
    const auto unused = [this] {
      mutex_.AssertHeld();
      return uses_ == 0;
    };
    mutex_.Await(absl::Condition(&unused));
  }
}

void StageJobRunner::ReportFailure(int64_t epoch, const absl::Status& status,
                                   const StageJob* job) {
  if (job != nullptr && job->TellsFailure()) return;
  {
    // What an abort did to the work of its epoch is no failure.
    MutexLock lock(&mutex_);
    if (epoch < aborted_below_) return;
  }
  LOG(ERROR) << status;
  v1::StageMessage message;
  v1::StageFailure& failure = *message.mutable_failure();
  failure.set_epoch(epoch);
  *failure.mutable_cause() =
      common::rpc::ToCause(status, resources_.stage_name);
  {
    MutexLock lock(&mutex_);
    last_error_ = failure.cause();
  }
  report_(epoch, std::move(message));
}

v1::Heartbeat StageJobRunner::heartbeat() const {
  v1::Heartbeat heartbeat;
  heartbeat.set_resident_bytes(resources_.resident_bytes());
  heartbeat.set_progress(inputs_.pieces());
  if (const Use job(*this); job.get() != nullptr) {
    const executor::ExecutorStatus status = job->status();
    heartbeat.set_progress(inputs_.pieces() + status.progress);
    heartbeat.set_queued_commands(status.queued);
    if (status.head.has_value()) {
      heartbeat.set_head_command(executor::Describe(*status.head));
      *heartbeat.mutable_head_since() = common::time::ToProto(status.head->age);
    }
    if (status.awaited.has_value())
      *heartbeat.mutable_awaited() = *status.awaited;
    for (const v1::Edge& edge : job->unconnected()) {
      *heartbeat.add_unconnected() = edge;
    }
  }
  return heartbeat;
}

void StageJobRunner::Describe(v1::StageStatus& status) const {
  status.set_resident_bytes(resources_.resident_bytes());
  {
    MutexLock lock(&mutex_);
    status.set_state(state_);
    *status.mutable_last_error() = last_error_;
  }
  const Use job(*this);
  status.set_rank(job.get() == nullptr ? -1 : job->rank());
  if (job.get() == nullptr) return;
  status.set_job_id(job->job_id());
  const executor::ExecutorStatus now = job->status();
  status.set_applied_step(now.applied_step);
  status.set_queued_commands(now.queued);
  status.set_activation_bytes(now.activation_bytes);
  status.set_peak_activation_bytes(now.peak_activation_bytes);
  status.set_waiting_for(now.waiting_for);
  if (now.head.has_value()) {
    status.set_current_command(executor::Describe(*now.head));
    *status.mutable_current_since() = common::time::ToProto(now.head->age);
  }
}

}  // namespace penstock::server::service
