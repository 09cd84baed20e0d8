// Runs one rank's part of one epoch: takes commands from a queue, executes them
// in order on the device, reports.
//
//   [1] IDLE --> [2] RUNNING --> [3] AT BARRIER --> [4] APPLYING    any
//     ^ ^             |                                  |           |
//     | +-------------+                                  |           v
//     +--------------------------------------------------+     [5] STOPPED
//
//   from  on                                   to  tells
//   1     Enqueue(TRAIN n, EVALUATE n or END)  2
//   2     the gradients of TRAIN n are final   3   StepReport(n)
//   2     EVALUATE n is done                   1   EvalReport(n) of the head
//   2     END is done, at the neighbours too   1   EndReport
//   3     Enqueue(ReleaseStep n)               4
//   4     V[n] is made                         1   ApplyAck(n)
//   any   a failure, or CheckDeadline()'s      5   StageFailure
//   any   Abort()                              5
//
// Commands may be enqueued ahead in any state but 5, and none after END.
//
// One engine thread owns the device, its streams and the parameters from
// Create() to the destructor. A failure or Abort() ends the epoch: the executor
// then does nothing any more and is replaced; process, parameters and their
// newest versions stay. Nothing of an unfinished step is kept.
#ifndef PENSTOCK_SERVER_EXECUTOR_EXECUTOR_H_
#define PENSTOCK_SERVER_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/device.h"
#include "server/executor/command_board.h"
#include "server/executor/executor_listener.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/model_writer.h"
#include "server/executor/program.h"
#include "server/executor/stage_assignment.h"
#include "server/executor/step_runner.h"
#include "server/model/parameters.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

struct ExecutorStatus {
  int64_t applied_step = 0;
  // Grows with every command started, and at END with every tensor.
  int64_t progress = 0;
  // Steps, evaluations and END that are not over, the one that runs included.
  int queued = 0;
  std::optional<HeadCommand> head;
  std::string waiting_for;          // "activation 0->1 from stage-0", or empty.
  std::optional<v1::Edge> awaited;  // The edge of `waiting_for`.
  absl::Status stopped;  // Why the epoch ended here; OK while it has not.
  int64_t activation_bytes = 0;       // Now.
  int64_t peak_activation_bytes = 0;  // Of the last reported step.
};

// Thread-safe.
class Executor {
 public:
  struct Options {
    int64_t epoch = 0;
    // The step to go on from: V[step] is one of the store's two versions.
    int64_t step = 0;
    std::string stage_name;  // For failures.
  };
  // Borrowed, but for the transport; they outlive the executor.
  struct Deps {
    device::Device* device = nullptr;
    model::ParameterStore* parameters = nullptr;
    // Of this epoch; its set-up may still be under way.
    std::unique_ptr<transport::Transport> transport;
    MicroBatchSource* source = nullptr;  // May be null on middle ranks.
    ModelWriter* writer = nullptr;
    const common::time::Clock* clock = nullptr;
    ExecutorListener* listener = nullptr;
  };

  // Allocates the static memory, returns the parameters to V[step] and starts
  // the engine. Blocks for the device, not for peers. ResourceExhausted;
  // FailedPrecondition for a V[step] that is not there or a missing source.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const StageAssignment& assignment, const Options& options, Deps deps);

  // What Create() and ParameterStore::Create() allocate on the device, to the
  // byte. `ops` only for packed sizes and scratch memory.
  static v1::MemoryBytes PredictMemory(const device::Ops& ops,
                                       const StageAssignment& assignment);

  // Abort(), then waits for the engine.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // The commands of a step, checked whole and queued. TRAIN steps follow each
  // other without a gap; EVALUATE is of the newest queued one; nothing follows
  // END, which is over when the neighbours have come to it too.
  // `came`: when that was there, from which on a stream that models time may
  // work for it.
  // InvalidArgument: a bad program (LowerCommands); FailedPrecondition:
  // out of turn; the cause, once stopped. On an error nothing was queued.
  absl::Status Enqueue(const v1::StepCommands& commands,
                       common::time::MonotonicTime came);
  absl::Status Enqueue(const v1::End& end, common::time::MonotonicTime came);
  // The barrier's word on the step that was reported last. FailedPrecondition
  // when the step is not at the barrier; InvalidArgument for no decision.
  absl::Status Enqueue(const v1::ReleaseStep& release,
                       common::time::MonotonicTime came);

  // OK while it works; the cause once it failed, which it reports itself, or
  // was aborted.
  absl::Status Stopped() const;

  // Ends the epoch: frees the engine within 1 s and drops what is queued. At
  // once in any thread, idempotent, does not wait. Reports nothing.
  void Abort(const absl::Status& cause);

  // Where the head of the queue has been there for command_deadline, and for
  // three times as long as any command before it: reports the failure, naming
  // command, micro-batch, peer and time, and aborts the transport. Returns the
  // time until it may be overdue. For a timer (DeadlineWatch); does not block.
  absl::Duration CheckDeadline();

  ExecutorStatus status() const;

 private:
  struct Work {
    std::variant<Program, v1::End> item;
    common::time::MonotonicTime came;
  };
  struct Release {
    v1::ReleaseStep step;
    common::time::MonotonicTime came;
  };

  Executor(const StageAssignment& assignment, const Options& options,
           Deps deps);
  absl::Status Start();
  void Engine();
  // The piece before is over. The next one; nothing once stopped.
  std::optional<Work> NextWork();
  absl::Status Run(const Program& program, common::time::MonotonicTime came);
  absl::Status Run(const v1::End& end);
  absl::StatusOr<Release> AwaitRelease();
  // Stops with `failure` and reports it, unless stopped before. `reason` may be
  // empty: the code says enough.
  void Fail(const absl::Status& failure, absl::string_view reason,
            const std::optional<transport::Edge>& edge);
  std::string WaitsFor(const HeadCommand& head) const;

  // Constant after construction.
  const StageAssignment assignment_;
  const Options options_;
  const Deps deps_;  // Without the transport.

  // Own synchronisation.
  CommandBoard board_;
  // Engine thread; Abort() and status() any thread.
  std::unique_ptr<transport::Transport> transport_;

  // Confined to the engine thread, once started.
  std::unique_ptr<device::Stream> compute_;
  std::unique_ptr<StepRunner> runner_;

  mutable common::sync::Mutex mutex_;
  std::deque<Work> work_ ABSL_GUARDED_BY(mutex_);  // Not begun.
  bool working_ ABSL_GUARDED_BY(mutex_) = false;   // On what it took of that.
  std::optional<Release> release_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_step_ ABSL_GUARDED_BY(mutex_);  // Newest TRAIN.
  int64_t applied_step_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;  // END is queued.
  bool at_barrier_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  int64_t peak_activation_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread engine_;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_EXECUTOR_H_
