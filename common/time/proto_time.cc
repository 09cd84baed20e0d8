#include "common/time/proto_time.h"

#include <cstdint>

namespace penstock::common::time {

google::protobuf::Timestamp ToProto(absl::Time time) {
  // Rounds down: protobuf's nanos are never negative here.
  const int64_t seconds = absl::ToUnixSeconds(time);
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>((time - absl::FromUnixSeconds(seconds)) /
                                       absl::Nanoseconds(1)));
  return proto;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  // Rounds towards zero: both parts have the duration's sign.
  absl::Duration rest;
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(rest / absl::Nanoseconds(1)));
  return proto;
}

absl::Time FromProto(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) +
         absl::Nanoseconds(timestamp.nanos());
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace penstock::common::time
