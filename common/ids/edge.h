// The kinds of directed edges between two virtual stages, and what an edge is
// called wherever people read of it: plans, messages and reports.
#ifndef PENSTOCK_COMMON_IDS_EDGE_H_
#define PENSTOCK_COMMON_IDS_EDGE_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::common::ids {

// The numbers are those of the wire: penstock.v1.EdgeKind, and the handshake of
// the tcp transport.
enum class EdgeKind : uint8_t {
  kActivation = 1,    // s -> s + 1
  kGradient = 2,      // s + 1 -> s
  kTiedGradient = 3,  // S - 1 -> 0: the head's gradient of the shared weight
  kTiedSum = 4,       // 0 -> S - 1: the sum
};

// "tied gradient"; "edge" for a number that is none of them.
absl::string_view Name(EdgeKind kind);

// A directed edge between two virtual stages. A plain value.
struct EdgeEnds {
  int source_stage = 0;
  int target_stage = 0;
  EdgeKind kind = EdgeKind::kActivation;

  friend auto operator<=>(const EdgeEnds&, const EdgeEnds&) = default;
};
// "tied gradient 2->0".
std::string ToString(const EdgeEnds& edge);

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_EDGE_H_
