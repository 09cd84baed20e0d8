// absl's times and durations to and from protobuf's: the only conversion in
// the project.
#ifndef PENSTOCK_COMMON_TIME_PROTO_TIME_H_
#define PENSTOCK_COMMON_TIME_PROTO_TIME_H_

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace penstock::common::time {

// What is below a nanosecond is dropped. REQUIRES: finite.
google::protobuf::Timestamp ToProto(absl::Time time);
google::protobuf::Duration ToProto(absl::Duration duration);

absl::Time FromProto(const google::protobuf::Timestamp& timestamp);
absl::Duration FromProto(const google::protobuf::Duration& duration);

}  // namespace penstock::common::time

#endif  // PENSTOCK_COMMON_TIME_PROTO_TIME_H_
