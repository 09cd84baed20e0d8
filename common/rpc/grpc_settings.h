// gRPC settings of both ends, in one place: they only work together (a client
// that pings more often than the server permits is cut off).
#ifndef PENSTOCK_COMMON_RPC_GRPC_SETTINGS_H_
#define PENSTOCK_COMMON_RPC_GRPC_SETTINGS_H_

#include <memory>

#include "absl/time/time.h"
#include "common/rpc/address.h"

namespace grpc {
class Channel;
class ServerBuilder;
}  // namespace grpc

namespace penstock::common::rpc {

inline constexpr absl::Duration kClientKeepalive = absl::Seconds(10);
inline constexpr absl::Duration kServerKeepalive = absl::Seconds(15);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(5);
// Must be below kClientKeepalive, or clients die with "too many pings".
inline constexpr absl::Duration kServerMinPingInterval = absl::Seconds(5);
inline constexpr int kMaxMetadataBytes = 16384;
// Of one connection; further calls wait silently in the client. So it is far
// above what the servers' admission (admission.h) lets in.
inline constexpr int kMaxConcurrentStreams = 65536;

// A stage's session must not share its connection with anything else.
enum class ChannelUse { kShared, kSession };

// An insecure channel: Unix sockets and loopback.
std::shared_ptr<grpc::Channel> CreateChannel(const Address& address,
                                             ChannelUse use);

// Sets limits, keepalive and so_reuseport=0 (two servers on one port would
// otherwise both bind).
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_GRPC_SETTINGS_H_
