// How large a message of the control plane may be, and what to say of one that
// is larger. gRPC's own refusal ends the stream without a word of which message
// it was, and whoever sends it again is refused again.
#ifndef PENSTOCK_COMMON_RPC_MESSAGE_LIMIT_H_
#define PENSTOCK_COMMON_RPC_MESSAGE_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace penstock::common::rpc {

// Of both ends, in both directions (grpc_settings.h).
inline constexpr int64_t kMaxControlMessageBytes = int64_t{64} << 20;

// Internal where `message` takes more than `limit` bytes, since what a job
// would make larger is refused before it runs: names both numbers and the field
// that takes most, as "StageMessage.end_report.digests".
absl::Status CheckMessageSize(const google::protobuf::Message& message,
                              int64_t limit = kMaxControlMessageBytes);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_MESSAGE_LIMIT_H_
