// The wire to the coordinator over gRPC.
#ifndef PENSTOCK_SERVER_SERVICE_GRPC_COORDINATOR_LINK_H_
#define PENSTOCK_SERVER_SERVICE_GRPC_COORDINATOR_LINK_H_

#include <memory>

#include "common/rpc/address.h"
#include "server/service/coordinator_link.h"

namespace penstock::server::service {

// `address` is the coordinator's; nothing is dialled before the first call.
std::unique_ptr<CoordinatorLink> MakeGrpcCoordinatorLink(
    const common::rpc::Address& address);

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_GRPC_COORDINATOR_LINK_H_
