// A JobRunner that does nothing and tells what it was asked to do.
#ifndef PENSTOCK_TESTS_SERVER_SERVICE_FAKE_JOB_RUNNER_H_
#define PENSTOCK_TESTS_SERVER_SERVICE_FAKE_JOB_RUNNER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/time/clock.h"
#include "server/service/job_runner.h"
#include "tests/server/service/recorded.h"

namespace penstock::testing {

// Thread-safe. Reports are the test's.
class FakeJobRunner final : public server::service::JobRunner {
 public:
  struct Call {
    std::string what;  // The method's name.
    int64_t epoch = 0;
    absl::Status cause;                // Of Abort.
    common::time::MonotonicTime came;  // Of Run.
  };

  void CheckInputs(int64_t epoch, v1::CheckInputs) override {
    calls.Put({.what = "CheckInputs", .epoch = epoch});
  }
  void ProbeOutput(int64_t epoch, v1::ProbeOutput) override {
    calls.Put({.what = "ProbeOutput", .epoch = epoch});
  }
  void Assemble(int64_t epoch, v1::Assignment) override {
    calls.Put({.what = "Assemble", .epoch = epoch});
  }
  void Run(int64_t epoch, server::service::RunAction work) override {
    calls.Put({.what = "Run", .epoch = epoch, .came = work.came});
  }
  void Abort(const server::service::AbortAction& abort) override {
    calls.Put({.what = "Abort", .epoch = abort.epoch, .cause = abort.cause});
  }
  v1::Heartbeat heartbeat() const override {
    v1::Heartbeat heartbeat;
    heartbeat.set_progress(7);
    return heartbeat;
  }
  void Describe(v1::StageStatus&) const override {}

  Recorded<Call> calls;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_SERVICE_FAKE_JOB_RUNNER_H_
