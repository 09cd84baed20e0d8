// Who is to blame when several things break at once (docs/wire_protocol.md).
//
// One dead stage shows as a broken session and as broken edges of its
// neighbours, in any order, within milliseconds. Neither alone says that the
// stage is lost: a session may break and come back, an edge may break between
// two live stages. So the two are matched:
//
//   session of X broken, and an edge to X reset while it is (or at most the
//   window before), or a connect to X's monitor port refused within the window
//                                 -> X is lost
//   an edge broken, and nothing better within the window
//                                 -> the edge itself is the cause
#ifndef PENSTOCK_COORDINATOR_DISPATCH_FIRST_CAUSE_H_
#define PENSTOCK_COORDINATOR_DISPATCH_FIRST_CAUSE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "penstock/v1/common.pb.h"

namespace penstock::coordinator::dispatch {

// A stage's word that a data edge broke.
struct EdgeFailure {
  std::string reporter;
  std::string peer;  // The stage at the edge's other end.
  v1::Cause cause;   // As the reporter gave it.
  int64_t step = 0;
  common::time::MonotonicTime at;
};

// A stage that is lost by the first rule above, and what gave it away.
struct LostStage {
  std::string name;
  std::string evidence;
};

// Thread-compatible. Of one job.
class FirstCause {
 public:
  explicit FirstCause(absl::Duration window) : window_(window) {}

  void EdgeFailed(const EdgeFailure& failure);
  void SessionBroken(absl::string_view stage, common::time::MonotonicTime now);
  void SessionRestored(absl::string_view stage);
  void MonitorRefused(absl::string_view stage, common::time::MonotonicTime now);

  // Nobody listened for the last `gap`: the windows are longer by that.
  void Forgive(absl::Duration gap);

  // The stage that the evidence so far gives away, if any.
  std::optional<LostStage> Lost() const;
  // The edge failure to blame when the window of one is over without a better
  // cause: one whose peer reports none itself, else the first.
  std::optional<EdgeFailure> Unexplained(common::time::MonotonicTime now) const;
  // When Unexplained() may have something.
  common::time::MonotonicTime NextDeadline() const;

  const std::vector<EdgeFailure>& edge_failures() const { return edges_; }

 private:
  const absl::Duration window_;
  std::vector<EdgeFailure> edges_;
  std::map<std::string, common::time::MonotonicTime> broken_;
  std::map<std::string, common::time::MonotonicTime> refused_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_FIRST_CAUSE_H_
