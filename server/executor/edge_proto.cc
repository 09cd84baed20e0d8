#include "server/executor/edge_proto.h"

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

v1::Edge ToProto(const transport::Edge& edge) {
  v1::Edge proto;
  proto.set_source_stage(edge.source_stage);
  proto.set_target_stage(edge.target_stage);
  for (const Row& row : kRows) {
    if (row.kind == edge.kind) proto.set_kind(row.proto);
  }
  return proto;
}

std::optional<EdgeKind> FromProto(v1::EdgeKind kind) {
  for (const Row& row : kRows) {
    if (row.proto == kind) return row.kind;
  }
  return std::nullopt;
}

}  // namespace penstock::server::executor
