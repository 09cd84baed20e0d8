// What a stage daemon decides about its coordinator session: registering,
// re-dialling, which messages are stale, what is said again after a break.
//
// A function of (state, event, now) to (state, actions): no gRPC, thread or
// clock. session_loop.h carries the actions out.
//
//      start               registered             stream open
//   [1] IDLE -> [2] REGISTERING -> [3] OPENING -> [4] CONNECTED
//                 ^    |               |               |
//                 |    | refused       | NOT_FOUND     | stream broken
//                 |    v               |               v
//                 |  [6] ENDED         +---------> [5] BROKEN: dial again after
//                 +--------------------------------    a back-off; what the
//                   (name or incarnation unknown)      stage holds, it keeps
//
// Ended by Stop (exit 0) or by a refusal that no retry can mend (exit 2).
// A broken session fails nothing: the executor works on with what it holds.
// One on which nothing was heard for a lease is as good as broken: gRPC's pings
// show that the coordinator's process lives, not that it works.
// After a break, Hello says how far this stage is, and everything it reported
// in the epoch that the coordinator may have missed is said again; the
// coordinator takes repetitions for what they are.
//
// Nothing is said again for ever: a message that is larger than the limit, a
// session that the coordinator ends for that, and one that breaks time after
// time before the coordinator shows that it goes on, become a StageFailure in
// place of all that was to be said again.
#ifndef PENSTOCK_SERVER_SERVICE_SESSION_CORE_H_
#define PENSTOCK_SERVER_SERVICE_SESSION_CORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::server::service {

// --- Events.

struct StartEvent {};
struct RegisteredEvent {
  absl::StatusOr<v1::RegisterStageResponse> response;
};
struct StreamBrokenEvent {
  absl::Status status;
};
struct MessageEvent {
  v1::CoordinatorMessage message;
  common::time::MonotonicTime came;  // Here, before anybody dealt with it.
};
// The job (assembly or executor) has something for the coordinator. Of an
// older epoch it is dropped.
struct JobEvent {
  int64_t epoch = 0;
  v1::StageMessage message;
};
struct TickEvent {};
// SIGTERM: say so, and end.
struct StopEvent {};
using SessionEvent =
    std::variant<StartEvent, RegisteredEvent, StreamBrokenEvent, MessageEvent,
                 JobEvent, TickEvent, StopEvent>;

// --- Actions.

struct RegisterAction {};
struct OpenStreamAction {
  v1::StageMessage hello;
};
struct CloseStreamAction {
  absl::Status status;
};
// Of a coordinator that would not end it too.
struct CancelStreamAction {
  absl::Status status;
};
struct SendAction {
  v1::StageMessage message;
};
struct HeartbeatAction {};
struct CheckInputsAction {
  int64_t epoch = 0;
  v1::CheckInputs request;
};
struct ProbeOutputAction {
  int64_t epoch = 0;
  v1::ProbeOutput request;
};
struct AssembleAction {
  int64_t epoch = 0;
  v1::Assignment assignment;
};
struct RunAction {
  int64_t epoch = 0;
  std::variant<v1::StepCommands, v1::ReleaseStep, v1::End> work;
  common::time::MonotonicTime came;
};
// Stop the job's work of epochs before `epoch` and free it. The job answers
// with Aborted. An OK cause: the job is over, and well.
struct AbortAction {
  int64_t epoch = 0;
  absl::Status cause;
};
// The process ends with `exit_code`; `status` says why.
struct EndAction {
  int exit_code = 0;
  absl::Status status;
};
using SessionAction =
    std::variant<RegisterAction, OpenStreamAction, CloseStreamAction,
                 CancelStreamAction, SendAction, HeartbeatAction,
                 CheckInputsAction, ProbeOutputAction, AssembleAction,
                 RunAction, AbortAction, EndAction>;

enum class SessionState {
  kIdle,
  kRegistering,
  kOpening,
  kConnected,
  kBroken,
  kEnded,
};

// Thread-compatible: confined to the session loop.
class SessionCore {
 public:
  struct Options {
    std::string stage_name;
    std::string incarnation;
    absl::Duration first_backoff = absl::Milliseconds(100);
    absl::Duration largest_backoff = absl::Seconds(2);
    // Sessions that break in a row, each before anything that was said on it
    // was answered.
    int most_breaks = 8;
  };
  explicit SessionCore(const Options& options);

  std::vector<SessionAction> Handle(SessionEvent event,
                                    common::time::MonotonicTime now);

  // When a TickEvent is due; Infinite() when none is.
  common::time::MonotonicTime next_tick() const;

  SessionState state() const { return state_; }
  int64_t term() const { return term_; }
  int64_t epoch() const { return epoch_; }
  int64_t stale_messages() const { return stale_messages_; }
  // Newest step whose ApplyAck the job gave in this epoch's job.
  int64_t applied_step() const { return applied_step_; }

 private:
  using Actions = std::vector<SessionAction>;
  using Time = common::time::MonotonicTime;

  void On(StartEvent event, Time now, Actions& actions);
  void On(RegisteredEvent event, Time now, Actions& actions);
  void On(StreamBrokenEvent event, Time now, Actions& actions);
  void On(MessageEvent event, Time now, Actions& actions);
  void On(JobEvent event, Time now, Actions& actions);
  void On(TickEvent event, Time now, Actions& actions);
  void On(StopEvent event, Time now, Actions& actions);

  void OnWelcome(const v1::CoordinatorMessage& message, Time now,
                 Actions& actions);
  void OnAbort(const v1::CoordinatorMessage& message, Actions& actions);
  void OnWork(MessageEvent event, Actions& actions);
  // Whether `message` is next in sequence; counts or answers it otherwise.
  bool InSequence(const v1::CoordinatorMessage& message, Actions& actions);
  // Aborted, and counted: it is lower than the newest.
  absl::Status CheckTerm(int64_t term);
  void EnterEpoch(int64_t epoch);
  void Remember(const v1::StageMessage& message);
  void OpenStream(Time now, Actions& actions);
  // The session is over, and is dialled again.
  void Break(const absl::Status& status, Time now);
  void Retry(Time now);
  // In place of all that was reported in this epoch.
  v1::StageMessage FailJob(const absl::Status& status);
  // The coordinator has read what was said on this session.
  void Heard();
  v1::StageMessage MakeHello() const;
  void Stamp(v1::StageMessage& message) const;

  const Options options_;
  SessionState state_ = SessionState::kIdle;
  int64_t term_ = 0;
  int64_t epoch_ = 0;
  int64_t handled_seq_ = 0;  // Of this epoch.
  int64_t applied_step_ = 0;
  int64_t stale_messages_ = 0;
  absl::Duration lease_ = absl::Seconds(10);
  absl::Duration heartbeat_ = absl::Seconds(1);
  absl::Duration backoff_;
  int breaks_ = 0;  // In a row, of sessions on which nothing was heard.
  Time next_heartbeat_ = Time::Infinite();
  Time retry_at_ = Time::Infinite();
  Time silent_at_ = Time::Infinite();  // When nothing is heard until then.
  // A name that another incarnation holds is retried for one lease.
  std::optional<Time> name_taken_until_;
  std::optional<v1::ReleaseStep> release_;
  // The newest message of each kind in this epoch, for saying again.
  std::map<v1::StageMessage::BodyCase, v1::StageMessage> reported_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_SESSION_CORE_H_
