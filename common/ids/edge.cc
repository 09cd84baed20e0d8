#include "common/ids/edge.h"

#include "absl/strings/str_cat.h"

namespace penstock::common::ids {

absl::string_view Name(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kActivation:
      return "activation";
    case EdgeKind::kGradient:
      return "gradient";
    case EdgeKind::kTiedGradient:
      return "tied gradient";
    case EdgeKind::kTiedSum:
      return "tied sum";
  }
  return "edge";
}

std::string ToString(const EdgeEnds& edge) {
  return absl::StrCat(Name(edge.kind), " ", edge.source_stage, "->",
                      edge.target_stage);
}

}  // namespace penstock::common::ids
