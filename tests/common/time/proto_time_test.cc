#include "common/time/proto_time.h"

#include "gtest/gtest.h"

namespace penstock::common::time {
namespace {

TEST(ProtoTimeTest, TimesRoundTrip) {
  for (const absl::Duration since_epoch :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(1500),
        absl::Seconds(1764457200) + absl::Nanoseconds(999999999),
        -absl::Nanoseconds(1), -absl::Milliseconds(1500)}) {
    const absl::Time time = absl::UnixEpoch() + since_epoch;
    const google::protobuf::Timestamp proto = ToProto(time);
    EXPECT_GE(proto.nanos(), 0) << time;
    EXPECT_LT(proto.nanos(), 1000000000) << time;
    EXPECT_EQ(FromProto(proto), time);
  }
}

TEST(ProtoTimeTest, DurationsRoundTrip) {
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(250),
        absl::Seconds(10), absl::Hours(1000000) + absl::Nanoseconds(7),
        -absl::Milliseconds(250), -absl::Milliseconds(1500)}) {
    EXPECT_EQ(FromProto(ToProto(duration)), duration);
  }
}

TEST(ProtoTimeTest, BothPartsOfANegativeDurationAreNegative) {
  const google::protobuf::Duration proto = ToProto(-absl::Milliseconds(1500));
  EXPECT_EQ(proto.seconds(), -1);
  EXPECT_EQ(proto.nanos(), -500000000);
}

TEST(ProtoTimeTest, ATimeBeforeTheEpochRoundsDown) {
  const google::protobuf::Timestamp proto =
      ToProto(absl::UnixEpoch() - absl::Milliseconds(1500));
  EXPECT_EQ(proto.seconds(), -2);
  EXPECT_EQ(proto.nanos(), 500000000);
}

TEST(ProtoTimeTest, LessThanANanosecondIsDropped) {
  EXPECT_EQ(FromProto(ToProto(absl::Nanoseconds(7) + absl::Nanoseconds(1) / 4)),
            absl::Nanoseconds(7));
}

}  // namespace
}  // namespace penstock::common::time
