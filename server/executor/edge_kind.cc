#include "server/executor/edge_kind.h"

namespace penstock::server::executor {
namespace {

using transport::EdgeKind;

struct Row {
  EdgeKind kind;
  v1::EdgeKind proto;
};
constexpr Row kRows[] = {
    {EdgeKind::kActivation, v1::EDGE_KIND_ACTIVATION},
    {EdgeKind::kGradient, v1::EDGE_KIND_GRADIENT},
    {EdgeKind::kTiedGradient, v1::EDGE_KIND_TIED_GRADIENT},
    {EdgeKind::kTiedSum, v1::EDGE_KIND_TIED_SUM},
};

}  // namespace

v1::EdgeKind ToProto(EdgeKind kind) {
  for (const Row& row : kRows) {
    if (row.kind == kind) return row.proto;
  }
  return v1::EDGE_KIND_UNSPECIFIED;
}

std::optional<EdgeKind> FromProto(v1::EdgeKind kind) {
  for (const Row& row : kRows) {
    if (row.proto == kind) return row.kind;
  }
  return std::nullopt;
}

}  // namespace penstock::server::executor
