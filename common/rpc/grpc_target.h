// An address as gRPC takes it, to dial and to listen.
#ifndef PENSTOCK_COMMON_RPC_GRPC_TARGET_H_
#define PENSTOCK_COMMON_RPC_GRPC_TARGET_H_

#include <string>

#include "common/rpc/address.h"

namespace penstock::common::rpc {

// Channels and servers read it as a URI: a socket's path is percent-encoded.
std::string GrpcTarget(const Address& address);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_GRPC_TARGET_H_
