// A whole job in one process without gRPC: the coordinator's core on the test's
// thread, real executors on threads of their own, the inprocess transport
// between them, and a mailbox in place of sessions.
#ifndef PENSTOCK_TESTS_INTEGRATION_LOCAL_CLUSTER_H_
#define PENSTOCK_TESTS_INTEGRATION_LOCAL_CLUSTER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/jobs/in_memory_job_store.h"
#include "server/device/device.h"
#include "server/executor/executor.h"
#include "server/executor/executor_listener.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/model_writer.h"
#include "server/model/parameters.h"
#include "server/transport/inprocess/hub.h"

namespace penstock::testing {

// What stages say, in the order in which they say it. Thread-safe.
class StageMailbox {
 public:
  struct Letter {
    int rank = 0;
    v1::StageMessage message;
  };
  void Put(int rank, v1::StageMessage message);
  // Blocks for the next letter; null when none comes for 60 s.
  std::unique_ptr<Letter> Take();

 private:
  common::sync::Mutex mutex_;
  std::deque<Letter> letters_ ABSL_GUARDED_BY(mutex_);
};

// Writes nothing; says what would be in the shard. Stateless.
class UnwrittenModel final : public server::executor::ModelWriter {
 public:
  absl::StatusOr<std::vector<std::string>> Write(
      const Request& request) override;
};

// A stage as the coordinator's core sees it. Confined to the test's thread.
class ClusterStage {
 public:
  virtual ~ClusterStage() = default;
  virtual v1::RegisterStageRequest Registration() const = 0;
  // Answers go to the mailbox.
  virtual absl::Status Take(const v1::CoordinatorMessage& message) = 0;
};

// One stage daemon's core: decodes what the coordinator says and runs it, on
// made-up data. Confined to the test's thread, but for the listener's calls.
class LocalStage final : public ClusterStage,
                         public server::executor::ExecutorListener {
 public:
  struct Deps {
    int index = 0;
    std::unique_ptr<server::device::Device> device;
    int threads = 1;  // The device's.
    server::transport::inprocess::Hub* hub = nullptr;
    StageMailbox* mailbox = nullptr;
    const common::time::Clock* clock = nullptr;
    int64_t sequences = 0;
    int64_t validation_sequences = 0;
  };
  explicit LocalStage(Deps deps);
  ~LocalStage() override;

  v1::RegisterStageRequest Registration() const override;
  absl::Status Take(const v1::CoordinatorMessage& message) override;

  void OnStepReport(const v1::StepReport& report) override;
  void OnApplyAck(const v1::ApplyAck& ack) override;
  void OnEvalReport(const v1::EvalReport& report) override;
  void OnEndReport(const v1::EndReport& report) override;
  void OnFailure(const v1::StageFailure& failure) override;

 private:
  absl::Status Assemble(const v1::Assignment& assignment, int64_t epoch);
  void Check(const v1::CheckInputs& check);

  const Deps deps_;
  const std::string name_;
  UnwrittenModel writer_;
  std::unique_ptr<server::executor::MicroBatchSource> source_;
  std::unique_ptr<server::model::ParameterStore> parameters_;
  std::unique_ptr<server::executor::Executor> executor_;
};

// Runs one job to its end.
class LocalCluster {
 public:
  struct Options {
    std::function<std::unique_ptr<server::device::Device>()> device;
    int threads = 1;                                  // The devices'.
    absl::Duration max_delay = absl::ZeroDuration();  // Of messages of data.
    uint64_t seed = 0;
    int64_t sequences = 64;
    int64_t validation_sequences = 8;
    // Empty: a LocalStage.
    std::function<std::unique_ptr<ClusterStage>(
        int index, server::transport::inprocess::Hub& hub,
        StageMailbox& mailbox)>
        stage;
  };
  LocalCluster(int stages, const Options& options);

  // The job when it has ended; an error when the test is stuck.
  absl::StatusOr<v1::Job> Run(const coordinator::dispatch::NewJob& job);
  const std::string& metrics() const { return metrics_; }

 private:
  coordinator::dispatch::Now now() const {
    return {clock_.Monotonic(), clock_.Now()};
  }
  absl::Status CarryOut(coordinator::dispatch::Actions& actions);

  common::time::RealClock clock_;
  StageMailbox mailbox_;
  coordinator::jobs::InMemoryJobStore store_;
  coordinator::dispatch::Core core_;
  server::transport::inprocess::Hub hub_;
  std::vector<std::unique_ptr<ClusterStage>> stages_;
  std::string metrics_;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_INTEGRATION_LOCAL_CLUSTER_H_
