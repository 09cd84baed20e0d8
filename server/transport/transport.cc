#include "server/transport/transport.h"

#include "absl/strings/str_cat.h"

namespace penstock::server::transport {
namespace {

const char* Name(EdgeKind kind) {
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
  return "?";
}

}  // namespace

std::string ToString(const Edge& edge) {
  return absl::StrCat(Name(edge.kind), " ", edge.source_stage, "->",
                      edge.target_stage);
}

std::string ToString(const Tag& tag) {
  return absl::StrCat("epoch ", tag.epoch, " step ", tag.step, " micro-batch ",
                      tag.micro_batch);
}

}  // namespace penstock::server::transport
