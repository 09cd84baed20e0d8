// Which stage daemons there are: names, incarnations, sessions and leases.
//
// A stage is alive while it is heard: anything it says renews its lease. A
// broken session alone loses nothing (the stage works on and dials again).
// A stage is LOST when
//   (a) its lease expires;
//   (b) its name registers with a new incarnation, which is accepted at once
//       when the old one's session is broken or it missed three heartbeats,
//       and refused otherwise;
//   (c) its session is broken and a neighbour or its own monitor port gives it
//       away (dispatch/first_cause.h decides);
//   (d) its parent reaped it.
// The caller learns of (a) and (b) from the results and tells (c) and (d) with
// MarkLost.
#ifndef PENSTOCK_COORDINATOR_REGISTRY_REGISTRY_H_
#define PENSTOCK_COORDINATOR_REGISTRY_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "coordinator/registry/natural_order.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::coordinator::registry {

// The shell numbers sessions from 1 and never twice; 0 is none.
using SessionId = int64_t;

struct Options {
  absl::Duration lease = absl::Seconds(10);
  absl::Duration heartbeat = absl::Seconds(1);
  // Protocol versions that this coordinator speaks, inclusive.
  int lowest_protocol = 1;
  int highest_protocol = 1;
  // LOST entries that are kept for people to see (ForgetLost).
  int lost_kept = 64;
};

// One stage. Immutable to all but the registry.
struct StageEntry {
  v1::RegisterStageRequest registration;
  v1::Stage::State state = v1::Stage::STATE_REGISTERED;
  v1::Cause cause;  // Why it is LOST.
  SessionId session = 0;
  // When the last session broke; nullopt while one is open or none was yet.
  std::optional<common::time::MonotonicTime> broken_since;
  common::time::MonotonicTime last_contact;
  std::string job_id;  // "" and -1 while it has no job.
  int rank = -1;
  std::string numerics_id;  // Of the job.
  int64_t step = 0;
  // When the last heartbeat came, whose fields follow; those that came before
  // the first are as below.
  common::time::MonotonicTime last_heartbeat;
  // See Heartbeat.progress.
  int64_t progress = -1;
  common::time::MonotonicTime progressed;  // When `progress` last changed.
  int queued_commands = 0;
  int64_t resident_bytes = 0;
  common::time::MonotonicTime progress_since;
  // The command at the head of its queue ("" for none), since when, and the
  // edge that it waits for, as the last heartbeat said.
  std::string head_command;
  common::time::MonotonicTime head_since;
  std::optional<v1::Edge> awaited;
  // Data edges that it still waits for, as the last heartbeat said.
  std::vector<v1::Edge> unconnected;
  // Its wall clock minus the coordinator's, as its newest heartbeats said.
  std::deque<absl::Duration> skews;

  // Measured; nullopt before its first heartbeat. A heartbeat's way only makes
  // it less, so of several the largest is nearest.
  std::optional<absl::Duration> clock_skew() const;
  const std::string& name() const { return registration.stage_name(); }
  const std::string& host() const { return registration.host(); }
  bool lost() const { return state == v1::Stage::STATE_LOST; }
  bool connected() const { return session != 0; }
};

// A time before a gap of which nobody can be blamed: as old at its end, `now`,
// as it was at its beginning.
common::time::MonotonicTime AfterGap(common::time::MonotonicTime time,
                                     absl::Duration gap,
                                     common::time::MonotonicTime now);

// "stage-1 (incarnation 0d2f..., pid 412 on host n7)".
std::string Describe(const StageEntry& stage);

// Why the stage is LOST: Unavailable, reason STAGE_LOST, "DESCRIPTION HOW".
v1::Cause LostCause(const StageEntry& stage, absl::string_view how);

// What a stage was until it was LOST, its session and its job included.
struct Loss {
  StageEntry before;
  v1::Cause cause;
};

// Thread-compatible: confined to the core's loop.
class Registry {
 public:
  explicit Registry(const Options& options) : options_(options) {}

  struct Registered {
    int protocol = 0;
    // The incarnation that this one replaced, when it was not lost before.
    std::optional<StageEntry> replaced;
  };
  // InvalidArgument: what cannot be (registration_check.h).
  // AlreadyExists: another incarnation of the name is alive; names both, and
  // says to retry for one lease (status/error_details.h).
  // FailedPrecondition, reason PROTOCOL_VERSION_UNSUPPORTED: no common version.
  absl::StatusOr<Registered> Register(const v1::RegisterStageRequest& request,
                                      common::time::MonotonicTime now);

  // Attaches a session. Returns the session that it takes the place of, or 0.
  // NotFound: the stage must register (again).
  absl::StatusOr<SessionId> OpenSession(absl::string_view name,
                                        absl::string_view incarnation,
                                        SessionId session,
                                        common::time::MonotonicTime now);
  // Returns the stage that it was the session of, or nullptr.
  const StageEntry* BreakSession(SessionId session,
                                 common::time::MonotonicTime now);

  // Renews the lease.
  void Heard(absl::string_view name, common::time::MonotonicTime now);
  // `wall` is the coordinator's, for skew alone.
  void Beat(absl::string_view name, const v1::Heartbeat& heartbeat,
            common::time::MonotonicTime now, absl::Time wall);

  // FailedPrecondition where the table does not have it.
  absl::Status Move(absl::string_view name, v1::Stage::State state);
  // Returns what it was; nullopt, and no change: it is LOST or unknown.
  std::optional<Loss> MarkLost(absl::string_view name, const v1::Cause& cause);

  // Gives a REGISTERED stage to a job (ASSIGNED). FailedPrecondition when it
  // has one.
  absl::Status Assign(absl::string_view name, absl::string_view job_id,
                      int rank, absl::string_view numerics_id);
  // The stage has dropped its job: REGISTERED, unless LOST.
  void Release(absl::string_view name);
  void SetStep(absl::string_view name, int64_t step);

  // Marks stages LOST whose lease is over; returns what they were.
  std::vector<Loss> Expire(common::time::MonotonicTime now);
  // Of the last `gap` nobody can be blamed: nobody listened. Every stage that
  // is not LOST has a new lease from now on, and what was timed is as old as
  // before the gap.
  void Forgive(absl::Duration gap, common::time::MonotonicTime now);
  // Forgets LOST stages, the ones first that were heard of longest ago, until
  // no more than Options::lost_kept are left, or only such as are `needed`.
  void ForgetLost(absl::FunctionRef<bool(absl::string_view name)> needed);
  // When the next lease is over.
  common::time::MonotonicTime NextExpiry() const;

  // Borrowed until the next call that is not const; nullptr: unknown.
  const StageEntry* Find(absl::string_view name) const;
  const StageEntry* FindBySession(SessionId session) const;
  // By name (natural_order.h).
  std::vector<const StageEntry*> List() const;
  v1::Stage ToProto(const StageEntry& stage,
                    common::time::MonotonicTime now) const;

  const Options& options() const { return options_; }

 private:
  struct ByName {
    using is_transparent = void;
    bool operator()(absl::string_view a, absl::string_view b) const {
      return NaturalLess(a, b);
    }
  };

  StageEntry* FindMutable(absl::string_view name);
  bool Alive(const StageEntry& stage, common::time::MonotonicTime now) const;

  const Options options_;
  std::map<std::string, StageEntry, ByName> stages_;
  std::map<SessionId, std::string> names_;  // Open sessions.
  // Heartbeats before this have waited in a gap, and tell nothing of clocks.
  common::time::MonotonicTime skews_from_;
};

}  // namespace penstock::coordinator::registry

#endif  // PENSTOCK_COORDINATOR_REGISTRY_REGISTRY_H_
