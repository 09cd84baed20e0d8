#include "coordinator/registry/registry.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/time/duration_text.h"
#include "common/time/proto_time.h"
#include "coordinator/registry/registration_check.h"
#include "coordinator/registry/stage_state.h"

namespace penstock::coordinator::registry {
namespace {

using common::time::MonotonicTime;

constexpr int kMissedHeartbeats = 3;
constexpr size_t kSkewsKept = 8;
constexpr absl::Duration kLargestSkew = absl::Hours(24 * 366 * 100);

std::string RangeText(int lowest, int highest) {
  return lowest == highest ? absl::StrCat(lowest)
                           : absl::StrCat(lowest, " to ", highest);
}

}  // namespace

MonotonicTime AfterGap(MonotonicTime time, absl::Duration gap,
                       MonotonicTime now) {
  return std::min(time + gap, now);
}

std::string Describe(const StageEntry& stage) {
  return absl::StrCat(stage.name(), " (incarnation ",
                      stage.registration.incarnation(), ", pid ",
                      stage.registration.pid(), " on host ", stage.host(), ")");
}

v1::Cause LostCause(const StageEntry& stage, absl::string_view how) {
  return common::rpc::ToCause(
      common::status::WithReason(
          absl::UnavailableError(absl::StrCat(Describe(stage), " ", how)),
          common::status::kReasonStageLost),
      stage.name());
}

StageEntry* Registry::FindMutable(absl::string_view name) {
  const auto it = stages_.find(name);
  return it == stages_.end() ? nullptr : &it->second;
}

const StageEntry* Registry::Find(absl::string_view name) const {
  const auto it = stages_.find(name);
  return it == stages_.end() ? nullptr : &it->second;
}

const StageEntry* Registry::FindBySession(SessionId session) const {
  const auto it = names_.find(session);
  return it == names_.end() ? nullptr : Find(it->second);
}

bool Registry::Alive(const StageEntry& stage, MonotonicTime now) const {
  return !stage.lost() && !stage.broken_since.has_value() &&
         now - stage.last_contact < kMissedHeartbeats * options_.heartbeat;
}

absl::StatusOr<Registry::Registered> Registry::Register(
    const v1::RegisterStageRequest& request, MonotonicTime now) {
  RETURN_IF_ERROR(CheckRegistration(request));
  Registered result;
  result.protocol =
      std::min(request.protocol().highest(), options_.highest_protocol);
  if (result.protocol < request.protocol().lowest() ||
      result.protocol < options_.lowest_protocol) {
    return common::status::WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "stage ", request.stage_name(), " speaks protocol ",
            RangeText(request.protocol().lowest(),
                      request.protocol().highest()),
            ", the coordinator ",
            RangeText(options_.lowest_protocol, options_.highest_protocol),
            "; install the same release on both")),
        common::status::kReasonProtocolVersionUnsupported);
  }
  if (StageEntry* old = FindMutable(request.stage_name()); old != nullptr) {
    const bool same = old->registration.incarnation() == request.incarnation();
    if (same && !old->lost()) {  // A retried request.
      old->registration = request;
      old->last_contact = now;
      return result;
    }
    if (!same && Alive(*old, now)) {
      // Whether it lives is certain when its lease is over.
      return common::status::WithRetryAfter(
          absl::AlreadyExistsError(absl::StrCat(
              "the name ", request.stage_name(), " is taken by ",
              Describe(*old), ", which is alive; refused incarnation ",
              request.incarnation(), ", pid ", request.pid(), " on host ",
              request.host(), "; give it another --name")),
          options_.lease);
    }
    if (!old->lost()) result.replaced = *old;
    names_.erase(old->session);
  }
  StageEntry entry;
  entry.registration = request;
  entry.last_contact = now;
  entry.progress_since = now;
  stages_[request.stage_name()] = std::move(entry);
  return result;
}

absl::StatusOr<SessionId> Registry::OpenSession(absl::string_view name,
                                                absl::string_view incarnation,
                                                SessionId session,
                                                MonotonicTime now) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr || stage->lost() ||
      stage->registration.incarnation() != incarnation) {
    return absl::NotFoundError(absl::StrCat(
        "stage ", name, " incarnation ", incarnation, " is not registered here",
        stage != nullptr && stage->lost()
            ? " any more (it was given up: " + stage->cause.message() + ")"
            : "",
        "; register again"));
  }
  const SessionId old = stage->session;
  names_.erase(old);
  names_[session] = std::string(name);
  stage->session = session;
  stage->broken_since.reset();
  stage->last_contact = now;
  return old;
}

const StageEntry* Registry::BreakSession(SessionId session, MonotonicTime now) {
  const auto it = names_.find(session);
  if (it == names_.end()) return nullptr;
  StageEntry* stage = FindMutable(it->second);
  names_.erase(it);
  stage->session = 0;
  stage->broken_since = now;
  return stage;
}

void Registry::Heard(absl::string_view name, MonotonicTime now) {
  if (StageEntry* stage = FindMutable(name); stage != nullptr) {
    stage->last_contact = now;
  }
}

std::optional<absl::Duration> StageEntry::clock_skew() const {
  if (skews.empty()) return std::nullopt;
  return *std::max_element(skews.begin(), skews.end());
}

void Registry::Beat(absl::string_view name, const v1::Heartbeat& heartbeat,
                    MonotonicTime now, absl::Time wall) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr) return;
  stage->last_contact = now;
  stage->last_heartbeat = now;
  if (stage->progress >= 0 && heartbeat.progress() != stage->progress) {
    stage->progressed = now;
  }
  if (heartbeat.progress() != stage->progress ||
      heartbeat.queued_commands() == 0) {
    stage->progress_since = now;
  }
  stage->progress = heartbeat.progress();
  stage->queued_commands = heartbeat.queued_commands();
  stage->resident_bytes = heartbeat.resident_bytes();
  stage->head_command = heartbeat.head_command();
  stage->head_since = now - (absl::Seconds(heartbeat.head_since().seconds()) +
                             absl::Nanoseconds(heartbeat.head_since().nanos()));
  stage->awaited.reset();
  if (heartbeat.has_awaited()) stage->awaited = heartbeat.awaited();
  stage->unconnected.assign(heartbeat.unconnected().begin(),
                            heartbeat.unconnected().end());
  if (heartbeat.has_wall_time() && now >= skews_from_) {
    stage->skews.push_back(
        std::clamp(common::time::FromProto(heartbeat.wall_time()) - wall,
                   -kLargestSkew, kLargestSkew));
    if (stage->skews.size() > kSkewsKept) stage->skews.pop_front();
  }
}

absl::Status Registry::Move(absl::string_view name, v1::Stage::State state) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no stage ", name));
  }
  RETURN_IF_ERROR(CheckTransition(stage->state, state));
  stage->state = state;
  return absl::OkStatus();
}

std::optional<Loss> Registry::MarkLost(absl::string_view name,
                                       const v1::Cause& cause) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr || stage->lost()) return std::nullopt;
  Loss lost{.before = *stage, .cause = cause};
  names_.erase(stage->session);
  stage->session = 0;
  stage->state = v1::Stage::STATE_LOST;
  stage->cause = cause;
  stage->job_id.clear();
  stage->rank = -1;
  return lost;
}

absl::Status Registry::Assign(absl::string_view name, absl::string_view job_id,
                              int rank, absl::string_view numerics_id) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no stage ", name));
  }
  RETURN_IF_ERROR(CheckTransition(stage->state, v1::Stage::STATE_ASSIGNED));
  stage->state = v1::Stage::STATE_ASSIGNED;
  stage->job_id = std::string(job_id);
  stage->rank = rank;
  stage->numerics_id = std::string(numerics_id);
  stage->step = 0;
  return absl::OkStatus();
}

void Registry::Release(absl::string_view name) {
  StageEntry* stage = FindMutable(name);
  if (stage == nullptr || stage->lost()) return;
  if (stage->state != v1::Stage::STATE_REGISTERED) {
    CHECK_OK(CheckTransition(stage->state, v1::Stage::STATE_REGISTERED));
  }
  stage->state = v1::Stage::STATE_REGISTERED;
  stage->cause.Clear();
  stage->job_id.clear();
  stage->rank = -1;
}

void Registry::SetStep(absl::string_view name, int64_t step) {
  if (StageEntry* stage = FindMutable(name); stage != nullptr) {
    stage->step = step;
  }
}

std::vector<Loss> Registry::Expire(MonotonicTime now) {
  std::vector<std::string> expired;
  for (const auto& [name, stage] : stages_) {
    if (!stage.lost() && now - stage.last_contact >= options_.lease) {
      expired.push_back(name);
    }
  }
  std::vector<Loss> lost;
  for (const std::string& name : expired) {
    const StageEntry& stage = *Find(name);
    lost.push_back(*MarkLost(
        name,
        LostCause(stage,
                  absl::StrCat(
                      "was silent for ",
                      common::time::DurationText(now - stage.last_contact),
                      ", its lease is ", absl::FormatDuration(options_.lease),
                      stage.connected() ? " (its connection is open: is the "
                                          "process stopped?)"
                                        : " (its connection is broken)"))));
  }
  return lost;
}

void Registry::Forgive(absl::Duration gap, MonotonicTime now) {
  skews_from_ = now + options_.heartbeat;
  const auto later = [&](MonotonicTime& time) {
    time = AfterGap(time, gap, now);
  };
  for (auto& [name, stage] : stages_) {
    if (stage.lost()) continue;
    stage.last_contact = now;
    if (stage.broken_since.has_value()) later(*stage.broken_since);
    later(stage.progressed);
    later(stage.progress_since);
    later(stage.head_since);
  }
}

MonotonicTime Registry::NextExpiry() const {
  MonotonicTime next = MonotonicTime::Infinite();
  for (const auto& [name, stage] : stages_) {
    if (!stage.lost()) {
      next = std::min(next, stage.last_contact + options_.lease);
    }
  }
  return next;
}

void Registry::ForgetLost(
    absl::FunctionRef<bool(absl::string_view name)> needed) {
  std::vector<std::pair<MonotonicTime, std::string>> lost;
  for (const auto& [name, stage] : stages_) {
    if (stage.lost()) lost.emplace_back(stage.last_contact, name);
  }
  auto surplus = static_cast<int>(lost.size()) - options_.lost_kept;
  if (surplus <= 0) return;
  std::sort(lost.begin(), lost.end());
  for (const auto& [time, name] : lost) {
    if (surplus == 0) return;
    if (needed(name)) continue;
    stages_.erase(name);
    --surplus;
  }
}

std::vector<const StageEntry*> Registry::List() const {
  std::vector<const StageEntry*> list;
  for (const auto& [name, stage] : stages_) list.push_back(&stage);
  return list;
}

v1::Stage Registry::ToProto(const StageEntry& stage, MonotonicTime now) const {
  const v1::RegisterStageRequest& registration = stage.registration;
  v1::Stage proto;
  proto.set_name(stage.name());
  proto.set_incarnation(registration.incarnation());
  proto.set_pool(registration.pool());
  proto.set_state(stage.state);
  if (stage.cause.code() != 0) *proto.mutable_cause() = stage.cause;
  *proto.mutable_device() = registration.device();
  proto.set_numerics_id(stage.job_id.empty() ? registration.numerics_ids(0)
                                             : stage.numerics_id);
  proto.set_host(registration.host());
  proto.set_pid(registration.pid());
  proto.set_monitor_address(registration.monitor_address());
  proto.set_data_address(registration.data_address());
  *proto.mutable_build() = registration.build();
  proto.set_job_id(stage.job_id);
  proto.set_rank(stage.rank);
  proto.set_step(stage.step);
  if (!stage.lost()) {
    *proto.mutable_last_contact() =
        common::time::ToProto(now - stage.last_contact);
  }
  proto.set_resident_bytes(stage.resident_bytes);
  if (const auto skew = stage.clock_skew(); skew.has_value()) {
    *proto.mutable_clock_skew() = common::time::ToProto(*skew);
  }
  return proto;
}

}  // namespace penstock::coordinator::registry
