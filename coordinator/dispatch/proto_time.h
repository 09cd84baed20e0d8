// absl times and durations as protobuf has them.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_PROTO_TIME_H_
#define PENSTOCK_COORDINATOR_DISPATCH_PROTO_TIME_H_

#include <cstdint>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace penstock::coordinator::dispatch {

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);  // Rounds down.
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>((time - absl::FromUnixSeconds(seconds)) /
                                       absl::Nanoseconds(1)));
  return proto;
}

// REQUIRES: finite and not negative.
inline google::protobuf::Duration ToProto(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  google::protobuf::Duration proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>((duration - absl::Seconds(seconds)) /
                                       absl::Nanoseconds(1)));
  return proto;
}

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_PROTO_TIME_H_
