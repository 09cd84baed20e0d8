#include "server/service/session_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/cause.h"
#include "common/rpc/message_limit.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/time/proto_time.h"

namespace penstock::server::service {
namespace {

using Body = v1::StageMessage::BodyCase;

// Refusals that dialling again cannot mend.
bool IsFinal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// What is left to say when the rest cannot be said: `broken` ended the session,
// `times` in a row.
absl::Status Unspeakable(const absl::Status& broken, int times) {
  return common::status::WithReason(
      absl::InternalError(absl::StrCat(
          "what this stage reports cannot be said: ",
          times == 1 ? "the session"
                     : absl::StrCat(times, " sessions in a row"),
          " with the coordinator ended for it (",
          absl::StatusCodeToString(broken.code()),
          broken.message().empty() ? "" : ": ", broken.message(), ")")),
      common::status::kReasonInternal);
}

}  // namespace

SessionCore::SessionCore(const Options& options)
    : options_(options), backoff_(options.first_backoff) {}

std::vector<SessionAction> SessionCore::Handle(SessionEvent event, Time now) {
  Actions actions;
  if (state_ == SessionState::kEnded) return actions;
  std::visit([&](auto&& concrete) { On(std::move(concrete), now, actions); },
             std::move(event));
  return actions;
}

common::time::MonotonicTime SessionCore::next_tick() const {
  return std::min({next_heartbeat_, retry_at_, silent_at_});
}

void SessionCore::On(StartEvent, Time, Actions& actions) {
  state_ = SessionState::kRegistering;
  actions.push_back(RegisterAction{});
}

absl::Status SessionCore::CheckTerm(int64_t term) {
  if (term >= term_) return absl::OkStatus();
  ++stale_messages_;
  return absl::AbortedError(absl::StrCat(
      "stage ", options_.stage_name, " has worked for term ", term_,
      " of the coordinator and refuses one at term ", term,
      ": it is an old one, or its --state-dir was lost. Start it with the "
      "folder that it had, or this stage anew; dialling again"));
}

void SessionCore::On(RegisteredEvent event, Time now, Actions& actions) {
  if (state_ != SessionState::kRegistering) return;
  if (event.response.ok()) {
    if (const absl::Status stale = CheckTerm(event.response->term());
        !stale.ok()) {
      actions.push_back(CloseStreamAction{stale});
      Retry(now);
      return;
    }
    lease_ = common::time::FromProto(event.response->lease());
    heartbeat_ = common::time::FromProto(event.response->heartbeat());
    name_taken_until_.reset();
    OpenStream(now, actions);
    return;
  }
  const absl::Status& status = event.response.status();
  if (status.code() == absl::StatusCode::kAlreadyExists) {
    // The one that holds the name may be dead without anybody knowing yet.
    if (!name_taken_until_.has_value()) {
      name_taken_until_ =
          now + common::status::RetryAfter(status).value_or(lease_);
    }
    if (now >= *name_taken_until_) {
      state_ = SessionState::kEnded;
      actions.push_back(EndAction{.exit_code = 2, .status = status});
      return;
    }
  } else if (IsFinal(status)) {
    state_ = SessionState::kEnded;
    actions.push_back(EndAction{.exit_code = 2, .status = status});
    return;
  }
  Retry(now);
}

void SessionCore::On(StreamBrokenEvent event, Time now, Actions&) {
  if (state_ != SessionState::kOpening && state_ != SessionState::kConnected) {
    return;
  }
  Break(event.status, now);
}

void SessionCore::OpenStream(Time now, Actions& actions) {
  state_ = SessionState::kOpening;
  silent_at_ = now + lease_;
  actions.push_back(OpenStreamAction{MakeHello()});
}

void SessionCore::Break(const absl::Status& status, Time now) {
  next_heartbeat_ = silent_at_ = Time::Infinite();
  if (state_ == SessionState::kConnected && !reported_.empty()) {
    // Before Welcome it is the coordinator's admission that is exhausted.
    const bool too_large = absl::IsResourceExhausted(status);
    if (too_large || ++breaks_ >= options_.most_breaks) {
      FailJob(Unspeakable(status, too_large ? 1 : breaks_));
      breaks_ = 0;
    }
  }
  // Not known there (a restarted coordinator): register again.
  state_ = status.code() == absl::StatusCode::kNotFound
               ? SessionState::kRegistering
               : SessionState::kBroken;
  Retry(now);
}

void SessionCore::On(TickEvent, Time now, Actions& actions) {
  if (now >= silent_at_) {
    const absl::Status silent = absl::DeadlineExceededError(
        absl::StrCat("stage ", options_.stage_name,
                     " has heard nothing from the coordinator for ",
                     absl::FormatDuration(lease_), "; dialling again"));
    actions.push_back(CancelStreamAction{silent});
    Break(silent, now);
  }
  if (now >= retry_at_) {
    retry_at_ = Time::Infinite();
    if (state_ == SessionState::kRegistering) {
      actions.push_back(RegisterAction{});
    } else if (state_ == SessionState::kBroken) {
      OpenStream(now, actions);
    }
  }
  if (now >= next_heartbeat_) {
    next_heartbeat_ = now + heartbeat_;
    actions.push_back(HeartbeatAction{});
  }
}

void SessionCore::On(StopEvent, Time, Actions& actions) {
  const absl::Status cause = common::status::WithReason(
      absl::CancelledError(
          absl::StrCat("stage ", options_.stage_name, " was told to stop")),
      common::status::kReasonStageLost);
  if (state_ == SessionState::kConnected) {
    v1::StageMessage message;
    auto& failure = *message.mutable_failure();
    failure.set_epoch(epoch_);
    *failure.mutable_cause() = common::rpc::ToCause(cause, options_.stage_name);
    actions.push_back(SendAction{std::move(message)});
  }
  actions.push_back(AbortAction{.epoch = epoch_ + 1, .cause = cause});
  actions.push_back(CloseStreamAction{absl::OkStatus()});
  actions.push_back(EndAction{.exit_code = 0, .status = absl::OkStatus()});
  state_ = SessionState::kEnded;
  next_heartbeat_ = retry_at_ = silent_at_ = Time::Infinite();
}

void SessionCore::On(MessageEvent event, Time now, Actions& actions) {
  if (state_ != SessionState::kOpening && state_ != SessionState::kConnected) {
    return;
  }
  v1::CoordinatorMessage& message = event.message;
  silent_at_ = now + lease_;
  if (const absl::Status stale = CheckTerm(message.term()); !stale.ok()) {
    // In place of Welcome: nothing else will ever come on this session.
    if (state_ == SessionState::kOpening) {
      actions.push_back(CloseStreamAction{stale});
    }
    return;
  }
  if (message.epoch() < epoch_) {
    ++stale_messages_;
    return;
  }
  using Kind = v1::CoordinatorMessage::BodyCase;
  switch (message.body_case()) {
    case Kind::kWelcome:
      OnWelcome(message, now, actions);
      break;
    case Kind::kHeartbeatAck:
      Heard();
      break;
    case Kind::BODY_NOT_SET:  // Of a newer coordinator: nothing we know.
      break;
    case Kind::kAbort:
      OnAbort(message, actions);
      break;
    case Kind::kCheckInputs:
    case Kind::kProbeOutput:
    case Kind::kAssignment:
    case Kind::kCommands:
    case Kind::kRelease:
    case Kind::kEnd:
      if (state_ != SessionState::kConnected) break;  // Before Welcome.
      EnterEpoch(message.epoch());
      if (InSequence(message, actions)) {
        Heard();
        OnWork(std::move(event), actions);
      }
      break;
  }
}

void SessionCore::OnWelcome(const v1::CoordinatorMessage& message, Time now,
                            Actions& actions) {
  if (state_ != SessionState::kOpening) return;
  term_ = message.welcome().term();
  lease_ = common::time::FromProto(message.welcome().lease());
  heartbeat_ = common::time::FromProto(message.welcome().heartbeat());
  state_ = SessionState::kConnected;
  next_heartbeat_ = now + heartbeat_;
  silent_at_ = now + lease_;
  // In the order in which a job makes them: assembly, steps, end.
  for (const Body kind :
       {Body::kInputsChecked, Body::kOutputProbed, Body::kReady,
        Body::kApplyAck, Body::kStepReport, Body::kEvalReport, Body::kEndReport,
        Body::kFailure, Body::kAborted}) {
    if (const auto it = reported_.find(kind); it != reported_.end()) {
      Stamp(it->second);
      actions.push_back(SendAction{it->second});
    }
  }
}

void SessionCore::OnAbort(const v1::CoordinatorMessage& message,
                          Actions& actions) {
  const v1::Abort& abort = message.abort();
  EnterEpoch(std::max(abort.epoch(), message.epoch()));
  applied_step_ = 0;
  actions.push_back(AbortAction{
      .epoch = epoch_,
      .cause = abort.has_cause() ? common::rpc::FromCause(abort.cause())
                                 : absl::OkStatus()});
}

bool SessionCore::InSequence(const v1::CoordinatorMessage& message,
                             Actions& actions) {
  if (message.seq() <= handled_seq_) return false;  // Acknowledged in reports.
  if (message.seq() == handled_seq_ + 1) {
    handled_seq_ = message.seq();
    return true;
  }
  const absl::Status gap = absl::OutOfRangeError(absl::StrCat(
      "stage ", options_.stage_name, ": message ", message.seq(), " of epoch ",
      epoch_, " follows ", handled_seq_, "; dialling again"));
  actions.push_back(CloseStreamAction{gap});
  return false;
}

void SessionCore::OnWork(MessageEvent event, Actions& actions) {
  v1::CoordinatorMessage& message = event.message;
  using Kind = v1::CoordinatorMessage::BodyCase;
  switch (message.body_case()) {
    case Kind::kCheckInputs:
      actions.push_back(CheckInputsAction{
          .epoch = epoch_,
          .request = std::move(*message.mutable_check_inputs())});
      break;
    case Kind::kProbeOutput:
      actions.push_back(ProbeOutputAction{
          .epoch = epoch_,
          .request = std::move(*message.mutable_probe_output())});
      break;
    case Kind::kAssignment:
      applied_step_ = 0;
      actions.push_back(AssembleAction{
          .epoch = epoch_,
          .assignment = std::move(*message.mutable_assignment())});
      break;
    case Kind::kCommands:
      actions.push_back(
          RunAction{.epoch = epoch_,
                    .work = std::move(*message.mutable_commands()),
                    .came = event.came});
      break;
    case Kind::kRelease:
      release_ = message.release();
      // The report that it answers is old now.
      reported_.erase(Body::kStepReport);
      actions.push_back(RunAction{.epoch = epoch_,
                                  .work = std::move(*message.mutable_release()),
                                  .came = event.came});
      break;
    case Kind::kEnd:
      actions.push_back(RunAction{.epoch = epoch_,
                                  .work = std::move(*message.mutable_end()),
                                  .came = event.came});
      break;
    default:
      break;
  }
}

void SessionCore::On(JobEvent event, Time, Actions& actions) {
  if (event.epoch < epoch_) return;
  Stamp(event.message);
  if (const absl::Status fits = common::rpc::CheckMessageSize(event.message);
      fits.ok()) {
    Remember(event.message);
  } else {
    event.message = FailJob(fits);
  }
  if (state_ == SessionState::kConnected) {
    actions.push_back(SendAction{std::move(event.message)});
  }
}

void SessionCore::EnterEpoch(int64_t epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  handled_seq_ = 0;
  release_.reset();
  reported_.clear();
}

void SessionCore::Remember(const v1::StageMessage& message) {
  if (message.body_case() == Body::kApplyAck) {
    applied_step_ = message.apply_ack().step();
  }
  reported_[message.body_case()] = message;
}

void SessionCore::Heard() {
  breaks_ = 0;
  backoff_ = options_.first_backoff;
}

v1::StageMessage SessionCore::FailJob(const absl::Status& status) {
  v1::StageMessage message;
  v1::StageFailure& failure = *message.mutable_failure();
  failure.set_epoch(epoch_);
  *failure.mutable_cause() = common::rpc::ToCause(status, options_.stage_name);
  reported_.clear();
  Remember(message);
  return message;
}

void SessionCore::Retry(Time now) {
  retry_at_ = now + backoff_;
  backoff_ = std::min(2 * backoff_, options_.largest_backoff);
}

void SessionCore::Stamp(v1::StageMessage& message) const {
  if (message.has_step_report()) {
    message.mutable_step_report()->set_acked_seq(handled_seq_);
  } else if (message.has_apply_ack()) {
    message.mutable_apply_ack()->set_acked_seq(handled_seq_);
  }
}

v1::StageMessage SessionCore::MakeHello() const {
  v1::StageMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_stage_name(options_.stage_name);
  hello.set_incarnation(options_.incarnation);
  hello.set_term(term_);
  hello.set_epoch(epoch_);
  hello.set_applied_step(applied_step_);
  hello.set_acked_seq(handled_seq_);
  if (const auto it = reported_.find(Body::kStepReport);
      it != reported_.end() &&
      it->second.step_report().step() == applied_step_ + 1) {
    *hello.mutable_report() = it->second.step_report();
  }
  if (release_.has_value() && release_->step() == applied_step_) {
    *hello.mutable_release() = *release_;
  }
  return message;
}

}  // namespace penstock::server::service
