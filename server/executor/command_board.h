// Which command runs, since when, and what it waits for: written by the engine
// and its stream, read by watchdog, heartbeat and monitors.
//
// Commands are added when they are enqueued and end in the same order, on the
// thread that runs the stream. The oldest that has not ended is the head; it
// became the head when the one before it ended, or when it was added.
#ifndef PENSTOCK_SERVER_EXECUTOR_COMMAND_BOARD_H_
#define PENSTOCK_SERVER_EXECUTOR_COMMAND_BOARD_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/device/device.h"
#include "server/executor/stage_assignment.h"

namespace penstock::server::executor {

// What a command cannot start without.
struct CommandWait {
  const device::Event* event = nullptr;  // Of a transport: lives with it.
  int edge = kNone;                      // Index into StageAssignment::edges.
};

struct BoardCommand {
  std::string name;  // "2F5", "tied sum", "step end", "apply", "end".
  int64_t step = 0;
  v1::Op op = v1::OP_UNSPECIFIED;  // Commands of the coordinator only.
  int stage = kNone;
  int micro_batch = kNone;
  std::vector<CommandWait> waits;
  // Whether command_deadline applies: not where the disk decides.
  bool has_deadline = true;
};

// The head, as people are shown it.
struct HeadCommand {
  std::string name;
  int64_t step = 0;
  v1::Op op = v1::OP_UNSPECIFIED;
  int stage = kNone;
  int micro_batch = kNone;
  absl::Duration age;    // At the head of the queue.
  bool started = false;  // Its waits are over: it computes.
  bool has_deadline = true;
  int waits_for = kNone;  // Edge, or kNone.
};

// "F stage 1 micro-batch 3 of step 7"; "apply of step 7" for what is no command
// of the coordinator.
std::string Describe(const HeadCommand& head);

// Thread-safe.
class CommandBoard {
 public:
  // Borrows the clock.
  explicit CommandBoard(const common::time::Clock& clock) : clock_(clock) {}

  // --- Engine.

  void Add(BoardCommand command);
  void SetActivationBytes(int64_t bytes);
  // Timings of the commands that ended since the last call, in order, with
  // absolute times of the clock's zero; only the coordinator's commands. Of a
  // device that models time they are its own.
  std::vector<v1::OpTiming> TakeTimings();

  // --- Stream callbacks. `modelled`: the stream's own time, if it has one.

  using ModelledTime = std::optional<common::time::MonotonicTime>;
  void Started(ModelledTime modelled = std::nullopt);
  // The head, which takes long, gets on.
  void GotOn();
  void Ended(ModelledTime modelled = std::nullopt);

  // --- Any thread.

  std::optional<HeadCommand> head() const;
  // Grows with every command started, and as the head gets on.
  int64_t progress() const;
  // The longest that a command with a deadline was the head before it ended.
  absl::Duration slowest() const;
  int64_t activation_bytes() const;

 private:
  const common::time::Clock& clock_;

  mutable common::sync::Mutex mutex_;
  std::deque<BoardCommand> commands_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;  // The head.
  common::time::MonotonicTime head_since_ ABSL_GUARDED_BY(mutex_);
  // Of the head, as timings tell it.
  common::time::MonotonicTime start_ ABSL_GUARDED_BY(mutex_);
  int64_t progress_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration slowest_ ABSL_GUARDED_BY(mutex_);
  int64_t activation_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::OpTiming> timings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_COMMAND_BOARD_H_
