// Enqueues programs and optimizer steps on the compute stream.
//
// One stream does all of a rank's work, in the order of the commands, so within
// a rank the order itself is the dependency. What crosses it is expressed by
// events: a command waits for its message and for its send buffer, the engine
// for the copy out of a staging buffer before it writes it again, and for the
// stream before it reads a result. Transports are handed the stream itself:
// they touch a slot or a buffer after what is enqueued so far.
//
// Nothing here waits for the coordinator, and nothing is allocated.
#ifndef PENSTOCK_SERVER_EXECUTOR_STEP_RUNNER_H_
#define PENSTOCK_SERVER_EXECUTOR_STEP_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/device.h"
#include "server/device/host_event.h"
#include "server/executor/activation_stash.h"
#include "server/executor/command_board.h"
#include "server/executor/edge_ports.h"
#include "server/executor/host_buffers.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/program.h"
#include "server/executor/stage_assignment.h"
#include "server/model/chunk.h"
#include "server/model/parameters.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

// Thread-compatible: confined to the engine thread after Create().
class StepRunner {
 public:
  // All borrowed; the assignment too.
  struct Deps {
    device::Device* device = nullptr;
    device::Stream* compute = nullptr;
    model::ParameterStore* parameters = nullptr;
    transport::Transport* transport = nullptr;
    MicroBatchSource* source = nullptr;  // Where a chunk reads data.
    CommandBoard* board = nullptr;
    const common::time::Clock* clock = nullptr;
    int64_t epoch = 0;
  };
  // Allocates everything. ResourceExhausted; FailedPrecondition without a
  // source where there is a chunk that reads data.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(
      const StageAssignment& assignment, const Deps& deps);

  // The bytes of Create(), without the parameters'.
  static v1::MemoryBytes Predict(const device::Ops& ops,
                                 const StageAssignment& assignment);

  // Runs the program and blocks until its results are there. `stopped` is asked
  // between commands; its error ends the run. Other errors are the stream's.
  // The gradients of an error's step are forgotten by the next one. `came`, of
  // all three: when what is to be done was there.
  using Stopped = std::function<absl::Status()>;
  absl::StatusOr<v1::StepReport> Train(const Program& program,
                                       common::time::MonotonicTime came,
                                       const Stopped& stopped);
  // The totals are the head's; zero on other ranks.
  absl::StatusOr<v1::EvalReport> Evaluate(const Program& program,
                                          common::time::MonotonicTime came,
                                          const Stopped& stopped);
  // V[n] -> V[n + 1]; blocks until it is there.
  absl::StatusOr<v1::ApplyAck> Apply(const v1::ReleaseStep& release,
                                     common::time::MonotonicTime came);

  bool has_head() const { return head_ != kNone; }

 private:
  StepRunner(const StageAssignment& assignment, const Deps& deps);
  absl::Status Allocate();

  // A stream that models time does what is enqueued from now on after `came`.
  void Begin(common::time::MonotonicTime came);
  absl::Status RunCommands(const Program& program, const Stopped& stopped,
                           v1::EvalReport* evaluation);
  absl::Status RunCommand(const Program& program,
                          const ProgramCommand& command);
  void PostReceives(const Program& program, size_t& next, int enqueued);
  void Compute(const Program& program, const ProgramCommand& command,
               const device::Tensor& output);
  void ExchangeTied(const Program& program, const ProgramCommand& command);
  void EndTied(const Program& program);
  // Puts the command on the board around `work`, which takes the modelled time
  // on a device that models time.
  void Enqueue(BoardCommand command, const std::function<void()>& work,
               absl::Duration modelled = absl::ZeroDuration());
  absl::Status AwaitStream();

  const StageAssignment& assignment_;
  const Deps deps_;
  device::Stream& compute_;
  int head_ = kNone;  // Chunks, or kNone.
  int embedding_ = kNone;
  std::vector<std::unique_ptr<model::Chunk>> chunks_;
  std::unique_ptr<ActivationStash> stash_;
  std::unique_ptr<EdgePorts> ports_;
  std::unique_ptr<HostInputs> inputs_;
  std::unique_ptr<LossBuffer> losses_;  // With the head only.
  std::unique_ptr<device::Event> passed_;
  // Holds a stream that models time no longer than the epoch lasts.
  const std::shared_ptr<const device::Event> ended_;
  device::HostEvent begun_;  // Program or release: waited for by its first.
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_STEP_RUNNER_H_
