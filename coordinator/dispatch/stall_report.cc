#include "coordinator/dispatch/stall_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ids/edge.h"
#include "common/time/duration_text.h"

namespace penstock::coordinator::dispatch {

using common::time::DurationText;

namespace {

// What a heartbeat said is old news where commands take milliseconds; a wait of
// more than two heartbeats is not.
constexpr absl::Duration kSettled = absl::Seconds(2);
// A rank may have more of them; the first ones say where to look.
constexpr size_t kEdgesNamed = 4;

// "activation 0->1".
std::string EdgeText(const v1::Edge& edge) {
  // The numbers in common.proto are EdgeKind's.
  using common::ids::EdgeKind;
  static_assert(static_cast<int>(EdgeKind::kActivation) ==
                v1::EDGE_KIND_ACTIVATION);
  static_assert(static_cast<int>(EdgeKind::kGradient) ==
                v1::EDGE_KIND_GRADIENT);
  static_assert(static_cast<int>(EdgeKind::kTiedGradient) ==
                v1::EDGE_KIND_TIED_GRADIENT);
  static_assert(static_cast<int>(EdgeKind::kTiedSum) == v1::EDGE_KIND_TIED_SUM);
  return common::ids::ToString({.source_stage = edge.source_stage(),
                                .target_stage = edge.target_stage(),
                                .kind = static_cast<EdgeKind>(edge.kind())});
}

std::string Text(const std::vector<RankStanding>& ranks, int rank,
                 absl::Duration silence) {
  const RankStanding& r = ranks[rank];
  if (r.lost || r.silent > silence) {
    return absl::StrCat(r.name, " has been silent for ", DurationText(r.silent),
                        r.command.empty() ? "" : ", last heard of at ",
                        r.command);
  }
  if (r.waits_for >= 0) {
    return absl::StrCat(r.name, " waits for ", EdgeText(*r.awaited), " from ",
                        ranks[r.waits_for].name, " for ", DurationText(r.since),
                        " (", r.command, ")");
  }
  if (!r.command.empty()) {
    return absl::StrCat(r.name, " computes ", r.command, " for ",
                        DurationText(r.since));
  }
  return absl::StrCat(r.name, " has no command and does not report");
}

}  // namespace

std::string ReportUnconnected(const std::vector<OpenEdge>& edges) {
  std::vector<std::string> texts;
  for (const OpenEdge& open : edges) {
    if (texts.size() == kEdgesNamed) {
      texts.push_back(
          absl::StrCat("and ", edges.size() - texts.size(), " more"));
      break;
    }
    texts.push_back(absl::StrCat(EdgeText(open.edge), " of peer ", open.peer,
                                 " at ", open.address));
  }
  return texts.empty()
             ? ""
             : absl::StrCat(" waits for edge ", absl::StrJoin(texts, ", "));
}

StallReport ReportStall(const std::vector<RankStanding>& ranks,
                        absl::Duration silence) {
  // Lower is more to blame; -1: not named.
  const auto blame = [&](const RankStanding& r) {
    if (r.lost || r.silent > silence) return 0;
    if (r.waits_for >= 0) return 3;
    if (!r.command.empty()) return 1;
    return r.missing ? 2 : -1;
  };
  std::vector<int> order;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    if (blame(ranks[rank]) >= 0) order.push_back(rank);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return blame(ranks[a]) < blame(ranks[b]);
  });
  StallReport report;
  if (!order.empty() && blame(ranks[order.front()]) < 3) {
    report.culprit = order.front();
  }
  std::vector<std::string> texts;
  for (const int rank : order) texts.push_back(Text(ranks, rank, silence));
  report.text =
      texts.empty() ? "no stage has a command" : absl::StrJoin(texts, "; ");
  return report;
}

std::string ReportLoss(const std::vector<RankStanding>& ranks, int lost) {
  std::string text;
  if (!ranks[lost].command.empty()) {
    text = absl::StrCat("; at its last heartbeat, ",
                        DurationText(ranks[lost].told), " before, it was at ",
                        ranks[lost].command);
  }
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const RankStanding& r = ranks[rank];
    if (rank == lost || r.waits_for != lost || r.since < kSettled) continue;
    absl::StrAppend(&text, "; ", Text(ranks, rank, absl::InfiniteDuration()));
  }
  return text;
}

}  // namespace penstock::coordinator::dispatch
