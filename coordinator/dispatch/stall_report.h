// Who holds a job up, in words: from what each rank's last heartbeat said.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_STALL_REPORT_H_
#define PENSTOCK_COORDINATOR_DISPATCH_STALL_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "penstock/v1/common.pb.h"

namespace penstock::coordinator::dispatch {

// A data edge that does not stand yet, seen from one of its ranks.
struct OpenEdge {
  v1::Edge edge;
  std::string peer;
  std::string address;  // Of the peer's data listener.
};
// " waits for edge activation 0->1 of peer stage-1 at 10.0.0.7:4711, and 2
// more"; empty without edges.
std::string ReportUnconnected(const std::vector<OpenEdge>& edges);

// Where one rank is.
struct RankStanding {
  std::string name;
  bool lost = false;
  absl::Duration silent;  // Since it was last heard.
  std::string command;    // At the head of its queue, or "", and how long
  absl::Duration told;    // ago its heartbeat said so.
  absl::Duration since;   // Of the command.
  std::optional<v1::Edge> awaited;
  int waits_for = -1;    // The rank at the other end of `awaited`, or -1.
  bool missing = false;  // The barrier waits for it.
};

struct StallReport {
  int culprit = -1;  // Rank; -1 where each waits for another.
  // "stage-2 computes F stage 2 micro-batch 3 of step 7 for 42s; stage-1 waits
  // for gradient 2->1 from stage-2 for 41s (B stage 1 micro-batch 0 of step
  // 7)". The culprit is first.
  std::string text;
};

// The culprit is a rank that waits for nobody: one that is lost or silent for
// longer than `silence`, else one that computes, else one that is missing and
// has nothing to do. Those that wait follow; the others are not named.
StallReport ReportStall(const std::vector<RankStanding>& ranks,
                        absl::Duration silence);

// What a lost rank was doing, and who has waited for it for seconds, to be
// appended to the cause of its loss: "; at its last heartbeat, 10s before, it
// was at F stage 1 micro-batch 3 of step 7; stage-0 waits for ...". Empty
// where nothing is known.
std::string ReportLoss(const std::vector<RankStanding>& ranks, int lost);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_STALL_REPORT_H_
