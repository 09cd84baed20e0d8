// Core's stages: registration, sessions, what they say, how they end.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ids/names.h"
#include "common/rpc/address.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/core_state.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/stage_links.h"
#include "coordinator/registry/registry.h"

namespace penstock::coordinator::dispatch {

using registry::StageEntry;

namespace {

// With which a stage daemon refuses its flags, its address or its name.
constexpr int kBadConfiguration = 2;

// Terms, epochs, steps and seqs that are counted never get here, and one more
// or the sum of two is still a number.
constexpr int64_t kLargestCount = int64_t{1} << 53;

// Whether it is the stage that answers at its monitor address, or does not:
// what is asked at "unix:/run/s" here is another process than on its machine.
bool AnswersHere(const StageEntry& stage, absl::string_view host) {
  const auto address =
      common::rpc::ParseAddress(stage.registration.monitor_address());
  return address.ok() && (!address->machines_own() || stage.host() == host);
}

// InvalidArgument: no stage says that. `epoch` is the newest that was given
// out.
absl::Status CheckHello(const v1::Hello& hello, int64_t epoch) {
  RETURN_IF_ERROR(common::ids::CheckStageName(hello.stage_name()));
  const struct {
    const char* what;
    int64_t value;
    int64_t largest = kLargestCount;
  } kCounts[] = {
      {"term", hello.term()},
      {"epoch", hello.epoch(), std::max(kLargestCount, epoch)},
      {"applied_step", hello.applied_step()},
      {"acked_seq", hello.acked_seq()},
  };
  for (const auto& count : kCounts) {
    if (count.value >= 0 && count.value <= count.largest) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the Hello of ", hello.stage_name(), " has ", count.what, " ",
        count.value, ", which is not from 0 to ", count.largest));
  }
  return absl::OkStatus();
}

}  // namespace

void Core::State::TellLost(const registry::Loss& lost, const Now& now,
                           Actions& actions) {
  links.End(lost, actions);
  if (JobRun* run = FindRun(lost.before.job_id); run != nullptr) {
    run->StageLost(lost.before.name(), lost.cause, Context(now, actions));
  }
}

absl::StatusOr<v1::RegisterStageResponse> Core::RegisterStage(
    const v1::RegisterStageRequest& request, const Now& now, Actions& actions) {
  State& s = *state_;
  const StageEntry* before = s.registry.Find(request.stage_name());
  const bool known =
      before != nullptr && !before->lost() &&
      before->registration.incarnation() == request.incarnation();
  absl::StatusOr<registry::Registry::Registered> answer =
      s.registry.Register(request, now.monotonic);
  if (!answer.ok()) {
    // Of a taken name the stage tries again; nothing else can be mended.
    if (!absl::IsAlreadyExists(answer.status())) {
      s.Gone(common::rpc::ToCause(answer.status(), request.stage_name()));
      s.Settle(now, actions);
    }
    return answer.status();
  }
  const registry::Registry::Registered registered = *std::move(answer);
  if (registered.replaced.has_value()) {
    const StageEntry& old = *registered.replaced;
    s.TellLost(
        {.before = old,
         .cause = registry::LostCause(
             old, absl::StrCat("is lost: incarnation ", request.incarnation(),
                               ", pid ", request.pid(), " on host ",
                               request.host(), " took its name"))},
        now, actions);
  }
  if (!known) s.links.Forget(request.stage_name());
  v1::RegisterStageResponse response;
  response.set_protocol(registered.protocol);
  response.set_term(s.options.term);
  *response.mutable_lease() = common::time::ToProto(s.options.registry.lease);
  *response.mutable_heartbeat() =
      common::time::ToProto(s.options.registry.heartbeat);
  s.Settle(now, actions);
  return response;
}

absl::Status Core::OpenSession(SessionId session, const v1::Hello& hello,
                               const Now& now, Actions& actions) {
  State& s = *state_;
  const std::string& name = hello.stage_name();
  RETURN_IF_ERROR(CheckHello(hello, s.epoch));
  if (hello.term() > s.options.term ||
      (hello.term() == s.options.term && hello.epoch() > s.epoch)) {
    return absl::AbortedError(absl::StrCat(
        "stage ", name, " has seen term ", hello.term(), " epoch ",
        hello.epoch(), "; this coordinator is at term ", s.options.term,
        " epoch ", s.epoch,
        " and must not command it: it is an old one, or its --state-dir was "
        "lost. Start it with the folder that it had, or that stage anew"));
  }
  ASSIGN_OR_RETURN(const SessionId old,
                   s.registry.OpenSession(name, hello.incarnation(), session,
                                          now.monotonic));
  if (old != 0) {
    actions.push_back(CloseSession{
        old, absl::AbortedError("the stage opened another session")});
  }
  const StageEntry& stage = *s.registry.Find(name);
  // It holds a job that nobody will go on with: of a former coordinator, or
  // from before it was given up.
  const bool stray =
      stage.job_id.empty() && !s.links.Aborting(name) && hello.epoch() > 0 &&
      (hello.term() < s.options.term || hello.epoch() != s.links.epoch(name));
  if (stray) {
    s.epoch = std::max(s.epoch, hello.epoch());
    s.links.Begin(name, ++s.epoch);
  }

  v1::CoordinatorMessage welcome;
  welcome.mutable_welcome()->set_term(s.options.term);
  welcome.mutable_welcome()->set_epoch(s.links.epoch(name));
  *welcome.mutable_welcome()->mutable_lease() =
      common::time::ToProto(s.options.registry.lease);
  *welcome.mutable_welcome()->mutable_heartbeat() =
      common::time::ToProto(s.options.registry.heartbeat);
  s.links.SendUnnumbered(name, std::move(welcome), actions);
  if (stray) {
    s.links.Abort(
        name, ++s.epoch,
        common::rpc::ToCause(
            absl::AbortedError("the job that this stage worked for has ended"),
            ""),
        actions);
  } else {
    s.links.Resume(name, hello, actions);
  }
  if (JobRun* run = s.RunOf(name); run != nullptr) {
    run->SessionRestored(name, hello, s.Context(now, actions));
  }
  s.Settle(now, actions);
  return absl::OkStatus();
}

void Core::BreakSession(SessionId session, const Now& now, Actions& actions) {
  State& s = *state_;
  const StageEntry* stage = s.registry.BreakSession(session, now.monotonic);
  if (stage == nullptr) return;
  const std::string name = stage->name();
  if (AnswersHere(*stage, s.options.host)) {
    actions.push_back(ProbeMonitor{name, stage->registration.incarnation(),
                                   stage->registration.monitor_address()});
  }
  if (JobRun* run = s.RunOf(name); run != nullptr) {
    run->SessionBroken(name, s.Context(now, actions));
  }
  s.Settle(now, actions);
}

absl::Status Core::Receive(SessionId session, const v1::StageMessage& message,
                           const Now& now, Actions& actions) {
  State& s = *state_;
  const StageEntry* stage = s.registry.FindBySession(session);
  if (stage == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("session ", session, " is not open"));
  }
  const std::string name = stage->name();
  s.registry.Heard(name, now.monotonic);
  absl::Status status;
  switch (message.body_case()) {
    case v1::StageMessage::BODY_NOT_SET:
      return absl::InvalidArgumentError(
          absl::StrCat("an empty or unknown message from ", name));
    case v1::StageMessage::kHello:
      return absl::InvalidArgumentError(
          absl::StrCat("a second Hello from ", name));
    case v1::StageMessage::kHeartbeat: {
      s.registry.Beat(name, message.heartbeat(), now.monotonic, now.wall);
      if (JobRun* run = s.RunOf(name); run != nullptr) {
        run->TellSkew(name, s.Context(now, actions));
      }
      v1::CoordinatorMessage ack;
      ack.mutable_heartbeat_ack();
      s.links.SendUnnumbered(name, std::move(ack), actions);
      break;
    }
    case v1::StageMessage::kAborted:
      if (s.links.Aborted(name, message.aborted().epoch())) {
        JobRun* run = s.RunOf(name);
        s.registry.Release(name);
        if (run != nullptr) {
          run->StageReleased(name, s.Context(now, actions));
        }
      }
      break;
    default:
      if (JobRun* run = s.RunOf(name); run != nullptr) {
        status = run->Receive(name, message, s.Context(now, actions));
      }
  }
  s.Settle(now, actions);
  return status;
}

absl::Status Core::ReportStageExit(const v1::ReportStageExitRequest& request,
                                   const Now& now, Actions& actions) {
  State& s = *state_;
  const std::string how =
      request.exit_code() > 128
          ? absl::StrCat("was killed by signal ", request.exit_code() - 128)
          : absl::StrCat("exited with code ", request.exit_code());
  const auto lost = [&](const std::string& who, absl::string_view when) {
    // Its own start was refused: flags, an address in use, a name.
    const auto code = request.exit_code() == kBadConfiguration
                          ? absl::StatusCode::kInvalidArgument
                          : absl::StatusCode::kUnavailable;
    return common::rpc::ToCause(
        common::status::WithReason(
            absl::Status(code, absl::StrCat(who, " ", how, when)),
            common::status::kReasonStageLost),
        request.stage_name());
  };
  const StageEntry* stage = s.registry.Find(request.stage_name());
  if (stage == nullptr || stage->registration.pid() != request.pid()) {
    if (!s.options.fixed_stages) {
      return absl::NotFoundError(absl::StrCat("no stage ", request.stage_name(),
                                              " with pid ", request.pid()));
    }
    s.Gone(
        lost(absl::StrCat(request.stage_name(), " (pid ", request.pid(), ")"),
             " before it registered"));
    s.Settle(now, actions);
    return absl::OkStatus();
  }
  const v1::Cause cause = lost(registry::Describe(*stage), "");
  JobRun* run = s.RunOf(request.stage_name());
  if (run == nullptr) s.Gone(cause);
  if (stage->lost() && run != nullptr) {
    run->ExplainLoss(request.stage_name(), how, s.Context(now, actions));
  }
  s.LoseStage(request.stage_name(), cause, now, actions);
  s.Settle(now, actions);
  return absl::OkStatus();
}

void Core::MonitorRefused(absl::string_view stage_name,
                          absl::string_view incarnation, const Now& now,
                          Actions& actions) {
  State& s = *state_;
  const StageEntry* stage = s.registry.Find(stage_name);
  if (stage == nullptr || stage->lost() || stage->connected() ||
      stage->registration.incarnation() != incarnation) {
    return;  // It is back, or gone already.
  }
  if (JobRun* run = s.RunOf(stage_name); run != nullptr) {
    run->MonitorRefused(stage_name, s.Context(now, actions));
  } else if (stage->broken_since.has_value() &&
             now.monotonic - *stage->broken_since <= s.options.cause_window) {
    s.LoseStage(
        stage_name,
        registry::LostCause(*stage,
                            "is lost: its session broke and its monitor port "
                            "refuses connections"),
        now, actions);
  }
  s.Settle(now, actions);
}

}  // namespace penstock::coordinator::dispatch
