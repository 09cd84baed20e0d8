// transport::EdgeKind on the wire: one map, both ways.
#ifndef PENSTOCK_SERVER_EXECUTOR_EDGE_KIND_H_
#define PENSTOCK_SERVER_EXECUTOR_EDGE_KIND_H_

#include <optional>

#include "penstock/v1/common.pb.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

v1::EdgeKind ToProto(transport::EdgeKind kind);

// nullopt: not a kind that this stage knows.
std::optional<transport::EdgeKind> FromProto(v1::EdgeKind kind);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_EDGE_KIND_H_
