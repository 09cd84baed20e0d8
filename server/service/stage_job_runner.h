// The real JobRunner: builds, runs and drops StageJobs on a worker thread.
#ifndef PENSTOCK_SERVER_SERVICE_STAGE_JOB_RUNNER_H_
#define PENSTOCK_SERVER_SERVICE_STAGE_JOB_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "common/sync/mutex.h"
#include "common/sync/serial_queue.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/stage_monitor_service.pb.h"
#include "server/service/job_runner.h"
#include "server/service/stage_job.h"

namespace penstock::server::service {

// Thread-safe. Assembly, release and whatever else blocks happens on the
// worker, in order; commands go straight to the executor's queue.
class StageJobRunner final : public JobRunner {
 public:
  // Borrows the resources.
  StageJobRunner(const StageResources& resources, Report report);
  ~StageJobRunner() override;

  void CheckInputs(int64_t epoch, v1::CheckInputs request) override;
  void ProbeOutput(int64_t epoch, v1::ProbeOutput request) override;
  void Assemble(int64_t epoch, v1::Assignment assignment) override;
  void Run(int64_t epoch, RunAction work) override;
  void Abort(const AbortAction& abort) override;
  v1::Heartbeat heartbeat() const override;
  void Describe(v1::StageStatus& status) const override;

 private:
  class Use;

  bool Aborted(int64_t epoch) const;
  // Work for the worker, which is not begun once its epoch is aborted.
  void Post(int64_t epoch, std::function<void()> work);
  // Of an epoch before; returns when its memory is free.
  void FreeJob(int64_t epoch);
  // Unless the epoch was aborted, or the job tells a better cause itself.
  void ReportFailure(int64_t epoch, const absl::Status& status,
                     const StageJob* job);

  // Constant after construction.
  const StageResources& resources_;
  const Report report_;

  // Confined to the worker, but for inputs_.pieces().
  int64_t working_for_ = 0;  // The epoch of what it is at.
  JobInputs inputs_;

  mutable common::sync::Mutex mutex_;
  // Work of epochs below is over before it begins.
  int64_t aborted_below_ ABSL_GUARDED_BY(mutex_) = 0;
  // Made and freed by the worker alone: a job takes an engine to join, and
  // memory to free. Others use it through a Use, which the worker waits for.
  std::unique_ptr<StageJob> job_ ABSL_GUARDED_BY(mutex_);
  mutable int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::Stage::State state_ ABSL_GUARDED_BY(mutex_) = v1::Stage::STATE_REGISTERED;
  v1::Cause last_error_ ABSL_GUARDED_BY(mutex_);

  // Last: it uses the others.
  common::sync::SerialQueue worker_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_STAGE_JOB_RUNNER_H_
