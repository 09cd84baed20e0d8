// All ranks of a job in one process: executors on the inprocess transport, or
// on tcp, and a coordinator's barrier that is a plain loop on the test's
// thread.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_PIPELINE_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "common/time/real_clock.h"
#include "coordinator/schedule/lowered_program.h"
#include "server/device/device.h"
#include "server/executor/executor.h"
#include "server/executor/executor_listener.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/model_writer.h"
#include "server/executor/stage_assignment.h"
#include "server/model/parameters.h"
#include "server/transport/inprocess/hub.h"
#include "server/transport/tcp/listener.h"
#include "server/transport/transport.h"
#include "tests/server/executor/assignments.h"

namespace penstock::testing {

// What one rank reported.
struct RankEvent {
  int rank = 0;
  std::variant<v1::StepReport, v1::ApplyAck, v1::EvalReport, v1::EndReport,
               v1::StageFailure>
      body;
};

// Thread-safe.
class Mailbox {
 public:
  void Put(RankEvent event);
  // Blocks for the next event; null when none comes for 60 s.
  std::unique_ptr<RankEvent> Take();
  // What is there already.
  std::vector<RankEvent> TakeAll();

 private:
  common::sync::Mutex mutex_;
  std::deque<RankEvent> events_ ABSL_GUARDED_BY(mutex_);
};

// One rank's listener.
class RankListener final : public server::executor::ExecutorListener {
 public:
  RankListener(int rank, Mailbox& mailbox) : rank_(rank), mailbox_(mailbox) {}
  void OnStepReport(const v1::StepReport& report) override {
    mailbox_.Put({rank_, report});
  }
  void OnApplyAck(const v1::ApplyAck& ack) override {
    mailbox_.Put({rank_, ack});
  }
  void OnEvalReport(const v1::EvalReport& report) override {
    mailbox_.Put({rank_, report});
  }
  void OnEndReport(const v1::EndReport& report) override {
    mailbox_.Put({rank_, report});
  }
  void OnFailure(const v1::StageFailure& failure) override {
    mailbox_.Put({rank_, failure});
  }

 private:
  const int rank_;
  Mailbox& mailbox_;
};

// Made-up sequences, a function of their number; some labels are ignored.
class MadeUpData final : public server::executor::MicroBatchSource {
 public:
  MadeUpData(int64_t sequence_length, int64_t vocab)
      : sequence_length_(sequence_length), vocab_(vocab) {}
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override;

 private:
  const int64_t sequence_length_;
  const int64_t vocab_;
};

enum class Wire { kInProcess, kTcp };

class Pipeline {
 public:
  struct Options {
    coordinator::schedule::LoweredProgram program;
    AssignmentOptions assignment;
    double learning_rate = 1e-2;
    double clip_norm = 1;
    int window = 2;
    // Initial weights; empty: model::Initialise with the seed.
    server::model::ParameterStore::Source weights;
    // Each empty: MadeUpData; the reference device; the wire's own transport.
    std::function<std::unique_ptr<server::executor::MicroBatchSource>(int rank)>
        data;
    std::function<std::unique_ptr<server::device::Device>(int rank)> device;
    std::function<std::unique_ptr<server::transport::Transport>(
        int rank, std::unique_ptr<server::transport::Transport>)>
        transport;
    Wire wire = Wire::kInProcess;
    server::transport::inprocess::HubOptions hub;  // Of kInProcess.
    server::executor::ModelWriter* writer = nullptr;
    const common::time::Clock* clock = nullptr;  // Null: the real one.
  };
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(Options options);
  ~Pipeline();

  struct Step {
    double loss = 0;  // Mean over valid tokens.
    int64_t valid = 0;
    double grad_norm = 0;
    std::vector<v1::StepReport> reports;  // By rank.
  };
  // Trains `count` steps, commands `window` steps ahead; returns when all are
  // applied, or with the first failure. `at_barrier` is called when a step's
  // reports are in, before its release.
  using AtBarrier = std::function<void(const Step&)>;
  absl::StatusOr<std::vector<Step>> Train(int count,
                                          const AtBarrier& at_barrier = {});
  absl::StatusOr<v1::EvalReport> Evaluate(int micro_batches);
  // weights_sha256 of what END reports, in hexadecimal.
  absl::StatusOr<std::string> End();
  // weights_sha256 read from the stores. REQUIRES: nothing runs.
  absl::StatusOr<std::string> WeightsSha256();
  // Of all ranks, canonical order. REQUIRES: nothing runs; for gradients a
  // barrier is enough.
  absl::Status ReadWeights(const server::model::ParameterStore::Sink& sink);
  absl::Status ReadGradients(const server::model::ParameterStore::Sink& sink);

  // Aborts all ranks. Any thread.
  void Abort();
  // Destroys the executors, in the order of ranks.
  void StopExecutors();
  // Aborts, then replaces executors and transports by those of the next epoch,
  // which go on from V[step]. REQUIRES: no step up to it was skipped.
  absl::Status NextEpoch(int64_t step);

  int64_t applied_step() const { return step_; }
  int ranks() const { return ranks_.size(); }
  server::executor::Executor& executor(int rank) {
    return *ranks_[rank].executor;
  }
  const server::executor::StageAssignment& assignment(int rank) const {
    return ranks_[rank].assignment;
  }
  server::model::ParameterStore& parameters(int rank) {
    return *ranks_[rank].parameters;
  }
  server::device::Device& device(int rank) { return *ranks_[rank].device; }
  // Commands, END or a release, which come now.
  template <typename Message>
  absl::Status Enqueue(int rank, const Message& message) {
    return executor(rank).Enqueue(message, clock().Monotonic());
  }
  const common::time::Clock& clock() const {
    return options_.clock != nullptr ? *options_.clock : real_clock_;
  }
  Mailbox& mailbox() { return mailbox_; }
  // The commands of the pipeline's own schedule.
  v1::StepCommands Commands(int rank, int64_t step) const {
    return TrainCommands(options_.program, rank, step);
  }

 private:
  // In the order of construction.
  struct Rank {
    server::executor::StageAssignment assignment;
    std::unique_ptr<server::device::Device> device;
    std::unique_ptr<server::executor::MicroBatchSource> data;
    std::unique_ptr<server::model::ParameterStore> parameters;
    std::unique_ptr<RankListener> listener;
    std::unique_ptr<server::executor::Executor> executor;
  };

  explicit Pipeline(Options options) : options_(std::move(options)) {}
  absl::Status Build();
  absl::Status OpenListeners(std::vector<std::string>& addresses);
  absl::StatusOr<std::unique_ptr<server::transport::Transport>> MakeTransport(
      int rank);
  absl::Status StartExecutors(int64_t step);
  // The next event; a StageFailure becomes its status.
  absl::StatusOr<RankEvent> Next();
  v1::ReleaseStep Combine(Step& step, int64_t number);

  const Options options_;
  common::time::RealClock real_clock_;
  Mailbox mailbox_;
  std::unique_ptr<server::transport::inprocess::Hub> hub_;
  std::vector<std::unique_ptr<server::transport::tcp::Listener>> listeners_;
  std::vector<Rank> ranks_;
  int64_t epoch_ = 1;
  int64_t step_ = 0;    // Applied by all.
  int64_t adam_t_ = 0;  // Steps that were not skipped.
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_PIPELINE_H_
