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

// How an end of a connection finds that the other one has vanished without a
// word: it pings, with calls or without, and ends the connection where no
// answer comes.
struct Keepalive {
  absl::Duration client = absl::Seconds(10);  // Between pings.
  absl::Duration server = absl::Seconds(15);
  absl::Duration timeout = absl::Seconds(5);  // Of an answer, at both ends.
  // What the server puts up with. Must be below `client`, or clients die with
  // "too many pings".
  absl::Duration min_ping_interval = absl::Seconds(5);
};
inline constexpr int kMaxMetadataBytes = 16384;
// Of one connection; further calls wait silently in the client. So it is far
// above what the servers' admission (admission.h) lets in.
inline constexpr int kMaxConcurrentStreams = 65536;

// A stage's session must not share its connection with anything else.
enum class ChannelUse { kShared, kSession };

// An insecure channel: Unix sockets and loopback.
std::shared_ptr<grpc::Channel> CreateChannel(const Address& address,
                                             ChannelUse use,
                                             const Keepalive& keepalive = {});

// Sets limits, keepalive and so_reuseport=0 (two servers on one port would
// otherwise both bind).
void ConfigureServer(grpc::ServerBuilder& builder,
                     const Keepalive& keepalive = {});

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_GRPC_SETTINGS_H_
