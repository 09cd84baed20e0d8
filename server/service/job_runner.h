// What the session needs of a stage's job: the seam between deciding (session)
// and doing (assembly, executor). stage_job_runner.h is the real one;
// tests/server/service/fake_job_runner.h tells what it was asked to do.
#ifndef PENSTOCK_SERVER_SERVICE_JOB_RUNNER_H_
#define PENSTOCK_SERVER_SERVICE_JOB_RUNNER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/stage_monitor_service.pb.h"
#include "server/service/session_core.h"

namespace penstock::server::service {

// Calls return at once; results come through the report function, from threads
// of the runner. Thread-safe.
class JobRunner {
 public:
  // A message for the coordinator, of `epoch`. Must not block.
  using Report = std::function<void(int64_t epoch, v1::StageMessage message)>;

  // Aborts what runs and waits for it.
  virtual ~JobRunner() = default;

  // Reports InputsChecked.
  virtual void CheckInputs(int64_t epoch, v1::CheckInputs request) = 0;
  // Reports OutputProbed.
  virtual void ProbeOutput(int64_t epoch, v1::ProbeOutput request) = 0;
  // Reports StageReady, or StageFailure.
  virtual void Assemble(int64_t epoch, v1::Assignment assignment) = 0;
  // Reports StepReport, ApplyAck, EvalReport, EndReport or StageFailure.
  virtual void Run(int64_t epoch, RunAction work) = 0;
  // Stops the work of older epochs, which reports nothing any more: commands
  // and waits within 1 s, reading and making weights at the next piece (1 MiB
  // of data, 2^20 elements of a tensor). Frees the job, then reports Aborted.
  virtual void Abort(const AbortAction& abort) = 0;

  virtual v1::Heartbeat heartbeat() const = 0;
  // Fills what the job knows of the status: job, rank, step, commands, bytes.
  virtual void Describe(v1::StageStatus& status) const = 0;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_JOB_RUNNER_H_
