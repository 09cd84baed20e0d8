// An address as gRPC's channels take it.
#ifndef PENSTOCK_COMMON_RPC_GRPC_TARGET_H_
#define PENSTOCK_COMMON_RPC_GRPC_TARGET_H_

#include <string>

#include "common/rpc/address.h"

namespace penstock::common::rpc {

// A channel reads its target as a URI, so that a socket's path is
// percent-encoded; a server takes Address::ToString() as it is.
std::string GrpcTarget(const Address& address);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_GRPC_TARGET_H_
