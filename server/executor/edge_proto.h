// Edges on the wire; one map of their kinds, both ways.
#ifndef PENSTOCK_SERVER_EXECUTOR_EDGE_PROTO_H_
#define PENSTOCK_SERVER_EXECUTOR_EDGE_PROTO_H_

#include <optional>

#include "penstock/v1/common.pb.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

v1::Edge ToProto(const transport::Edge& edge);

// nullopt: not a kind that this stage knows.
std::optional<transport::EdgeKind> FromProto(v1::EdgeKind kind);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_EDGE_PROTO_H_
