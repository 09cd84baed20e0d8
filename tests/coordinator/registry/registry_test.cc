#include "coordinator/registry/registry.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/status/error_details.h"
#include "common/time/proto_time.h"
#include "coordinator/registry/stage_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::registry {
namespace {

using common::time::MonotonicTime;
using penstock::testing::IsOkAndHolds;
using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using v1::Stage;

constexpr char kFirst[] = "11111111-1111-4111-8111-111111111111";
constexpr char kSecond[] = "22222222-2222-4222-8222-222222222222";

MonotonicTime At(double seconds) {
  return MonotonicTime::FromZero(absl::Seconds(1000 + seconds));
}

v1::RegisterStageRequest Request(const std::string& name,
                                 const std::string& incarnation = kFirst,
                                 const std::string& host = "n1") {
  v1::RegisterStageRequest request;
  request.set_stage_name(name);
  request.set_incarnation(incarnation);
  request.mutable_device()->set_kind("cpu");
  request.add_numerics_ids("cpu/avx2/1/0");
  request.mutable_protocol()->set_lowest(1);
  request.mutable_protocol()->set_highest(1);
  request.set_host(host);
  request.set_pid(7);
  request.set_data_address("127.0.0.1:1");
  return request;
}

TEST(RegistryTest, AnAliveNameIsRefusedNamingBothHostsAndIncarnations) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  EXPECT_THAT(
      registry.Register(Request("stage-0", kSecond, "n2"), At(1)).status(),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr(kFirst), HasSubstr(kSecond), HasSubstr("n1"),
                     HasSubstr("n2"))));
  EXPECT_EQ(common::status::RetryAfter(
                registry.Register(Request("stage-0", kSecond), At(1)).status()),
            absl::Seconds(10));
}

TEST(RegistryTest, ARepeatedRegistrationIsTheSameOne) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  ASSERT_OK_AND_ASSIGN(const auto again,
                       registry.Register(Request("stage-0"), At(1)));
  EXPECT_FALSE(again.replaced.has_value());
}

TEST(RegistryTest, ABrokenSessionLetsANewIncarnationInAtOnce) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  ASSERT_OK(registry.OpenSession("stage-0", kFirst, 1, At(0)).status());
  registry.BreakSession(1, At(0.1));
  ASSERT_OK_AND_ASSIGN(const auto registered,
                       registry.Register(Request("stage-0", kSecond), At(0.2)));
  ASSERT_TRUE(registered.replaced.has_value());
  EXPECT_EQ(registered.replaced->registration.incarnation(), kFirst);
  EXPECT_THAT(registry.OpenSession("stage-0", kFirst, 2, At(1)).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(RegistryTest, ThreeMissedHeartbeatsLetANewIncarnationIn) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  ASSERT_OK(registry.OpenSession("stage-0", kFirst, 1, At(0)).status());
  EXPECT_THAT(registry.Register(Request("stage-0", kSecond), At(2.9)).status(),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_OK(registry.Register(Request("stage-0", kSecond), At(3)).status());
  EXPECT_EQ(registry.FindBySession(1), nullptr);
}

TEST(RegistryTest, ProtocolsWithoutOverlapAreRefusedNamingBothRanges) {
  Registry registry({.lowest_protocol = 3, .highest_protocol = 4});
  v1::RegisterStageRequest request = Request("stage-0");
  request.mutable_protocol()->set_lowest(1);
  request.mutable_protocol()->set_highest(2);
  const absl::Status older = registry.Register(request, At(0)).status();
  EXPECT_THAT(older, StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("1 to 2"), HasSubstr("3 to 4"))));
  EXPECT_EQ(common::status::Reason(older), "PROTOCOL_VERSION_UNSUPPORTED");

  request.mutable_protocol()->set_lowest(5);
  request.mutable_protocol()->set_highest(5);
  EXPECT_THAT(registry.Register(request, At(0)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  request.mutable_protocol()->set_lowest(2);
  request.mutable_protocol()->set_highest(9);
  ASSERT_OK_AND_ASSIGN(const auto registered,
                       registry.Register(request, At(0)));
  EXPECT_EQ(registered.protocol, 4);
}

TEST(RegistryTest, MalformedRegistrationsAreRefused) {
  Registry registry({});
  EXPECT_THAT(registry.Register(Request("Stage 0"), At(0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(registry.Register(Request("stage-0", "one"), At(0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  v1::RegisterStageRequest request = Request("stage-0");
  request.clear_numerics_ids();
  EXPECT_THAT(registry.Register(request, At(0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// People are shown it in log lines, each of which is one line.
TEST(RegistryTest, WhatAStageSaysOfItselfIsOneLineOfText) {
  using Registration = v1::RegisterStageRequest;
  const struct {
    const char* what;
    void (*set)(Registration& request, const std::string& text);
  } kFields[] = {
      {"host", [](Registration& r, const std::string& t) { r.set_host(t); }},
      {"pool", [](Registration& r, const std::string& t) { r.set_pool(t); }},
      {"device.kind",
       [](Registration& r, const std::string& t) {
         r.mutable_device()->set_kind(t);
       }},
      {"device.memory_group",
       [](Registration& r, const std::string& t) {
         r.mutable_device()->set_memory_group(t);
       }},
      {"build.version",
       [](Registration& r, const std::string& t) {
         r.mutable_build()->set_version(t);
       }},
      {"build.build",
       [](Registration& r, const std::string& t) {
         r.mutable_build()->set_build(t);
       }},
      {"numerics id",
       [](Registration& r, const std::string& t) { r.add_numerics_ids(t); }},
  };
  for (const auto& field : kFields) {
    SCOPED_TRACE(field.what);
    for (const std::string& text :
         {std::string("x\nE1130 job failed"), std::string("x\ry"),
          std::string("\x1b[2J"), std::string("\xff"),
          std::string(1025, 'x')}) {
      Registry registry({});
      Registration request = Request("stage-0");
      field.set(request, text);
      const absl::Status refused = registry.Register(request, At(0)).status();
      EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("stage stage-0"),
                                          HasSubstr(field.what))));
      EXPECT_THAT(refused.message(), Not(HasSubstr("\n")));
    }
    Registry registry({});
    Registration request = Request("stage-0");
    field.set(request, "rack-7");
    EXPECT_OK(registry.Register(request, At(0)).status());
  }
}

TEST(RegistryTest, AddressesAreWhereSomebodyCanConnect) {
  const auto registered = [](const std::string& monitor,
                             const std::string& data) {
    v1::RegisterStageRequest request = Request("stage-0");
    request.set_monitor_address(monitor);
    request.set_data_address(data);
    return Registry({}).Register(request, At(0)).status();
  };
  EXPECT_OK(registered("", "127.0.0.1:1"));
  EXPECT_OK(registered("unix:/run/s", "[fe80::1%eth0]:40123"));
  EXPECT_OK(registered("node-7:7401", "10.0.0.7:40123"));
  for (const std::string monitor :
       {"nowhere", "unix:", "::1:7", "a:70000", "a\nb:7"}) {
    EXPECT_THAT(registered(monitor, "127.0.0.1:1"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("stage stage-0: monitor_address")));
  }
  for (const std::string data :
       {"", "nowhere", "unix:/run/s", "127.0.0.1:0", "a\nb:7"}) {
    EXPECT_THAT(registered("unix:/run/s", data),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("stage stage-0: data_address")));
  }
}

TEST(RegistryTest, ASilentStageIsLostAtTheEndOfItsLeaseAndNotBefore) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  registry.Heard("stage-0", At(5));
  EXPECT_EQ(registry.NextExpiry(), At(15));
  EXPECT_THAT(registry.Expire(At(14.9)), ElementsAre());
  const std::vector<Loss> lost = registry.Expire(At(15));
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_EQ(lost[0].before.name(), "stage-0");
  const StageEntry* stage = registry.Find("stage-0");
  EXPECT_TRUE(stage->lost());
  EXPECT_EQ(stage->cause.reason(), "STAGE_LOST");
  EXPECT_THAT(stage->cause.message(), HasSubstr("silent for 10s"));
  EXPECT_EQ(registry.NextExpiry(), MonotonicTime::Infinite());
  // It comes back: it must register, and then is a new entry.
  EXPECT_THAT(
      registry.OpenSession("stage-0", kFirst, 1, At(16)).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("register again")));
  ASSERT_OK_AND_ASSIGN(const auto again,
                       registry.Register(Request("stage-0"), At(16)));
  EXPECT_FALSE(again.replaced.has_value());
  EXPECT_EQ(registry.Find("stage-0")->state, Stage::STATE_REGISTERED);
}

TEST(RegistryTest, ANewSessionTakesThePlaceOfTheOld) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  EXPECT_THAT(registry.OpenSession("stage-0", kFirst, 1, At(0)),
              IsOkAndHolds(0));
  EXPECT_THAT(registry.OpenSession("stage-0", kFirst, 2, At(1)),
              IsOkAndHolds(1));
  EXPECT_EQ(registry.BreakSession(1, At(2)), nullptr);  // No longer its own.
  EXPECT_TRUE(registry.Find("stage-0")->connected());
  EXPECT_NE(registry.BreakSession(2, At(2)), nullptr);
  EXPECT_FALSE(registry.Find("stage-0")->connected());
}

TEST(RegistryTest, StagesAreListedAsPeopleCount) {
  Registry registry({});
  for (const char* name : {"stage-10", "stage-2", "b", "stage-1", "a-1"}) {
    ASSERT_OK(registry.Register(Request(name), At(0)).status());
  }
  std::vector<std::string> names;
  for (const StageEntry* stage : registry.List()) {
    names.push_back(stage->name());
  }
  EXPECT_THAT(names, ElementsAre("a-1", "b", "stage-1", "stage-2", "stage-10"));
}

TEST(RegistryTest, AStageHasOneJobAtATime) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  ASSERT_OK(registry.Assign("stage-0", "job-a", 2, "cpu/avx2/1/0"));
  EXPECT_THAT(registry.Assign("stage-0", "job-b", 0, "cpu/avx2/1/0"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(registry.ToProto(*registry.Find("stage-0"), At(1)).rank(), 2);
  registry.Release("stage-0");
  EXPECT_OK(registry.Assign("stage-0", "job-b", 0, "cpu/avx2/1/0"));
}

TEST(RegistryTest, ProgressStandsStillOnlyWhileCommandsAreQueued) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  v1::Heartbeat beat;
  beat.set_progress(5);
  beat.set_queued_commands(3);
  registry.Beat("stage-0", beat, At(1), absl::UnixEpoch());
  registry.Beat("stage-0", beat, At(2), absl::UnixEpoch());
  EXPECT_EQ(registry.Find("stage-0")->progress_since, At(1));
  beat.set_queued_commands(0);
  registry.Beat("stage-0", beat, At(3), absl::UnixEpoch());
  EXPECT_EQ(registry.Find("stage-0")->progress_since, At(3));
}

TEST(RegistryTest, SilenceIsToldWithoutDigitsThatNobodyNeeds) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  const std::vector<Loss> lost = registry.Expire(At(10.000113));
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_THAT(lost[0].cause.message(),
              HasSubstr("silent for 10s, its lease is 10s "));
}

TEST(RegistryTest, MemoryIsWhatTheNewestHeartbeatSays) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  const auto bytes = [&registry] {
    return registry.ToProto(*registry.Find("stage-0"), At(9)).resident_bytes();
  };
  EXPECT_EQ(bytes(), 0);
  v1::Heartbeat beat;
  for (const int64_t resident : {5 << 20, 3 << 20}) {
    beat.set_resident_bytes(resident);
    registry.Beat("stage-0", beat, At(1), absl::UnixEpoch());
    EXPECT_EQ(bytes(), resident);
  }
}

TEST(RegistryTest, LostEntriesAreBounded) {
  Registry registry({.lost_kept = 2});
  for (int i = 0; i < 5; ++i) {
    const std::string name = "stage-" + std::to_string(i);
    ASSERT_OK(registry.Register(Request(name), At(i)).status());
    registry.MarkLost(name, {});
  }
  const auto names = [&registry] {
    std::vector<std::string> names;
    for (const StageEntry* stage : registry.List()) {
      names.push_back(stage->name());
    }
    return names;
  };
  registry.ForgetLost([](absl::string_view name) { return name == "stage-1"; });
  EXPECT_THAT(names(), ElementsAre("stage-1", "stage-4"));
  registry.ForgetLost([](absl::string_view) { return false; });
  EXPECT_THAT(names(), ElementsAre("stage-1", "stage-4"));
}

TEST(RegistryTest, StagesThatAreNeededAreNotForgottenHoweverManyAreLost) {
  Registry registry({.lost_kept = 1});
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_OK(registry.Register(Request(name), At(0)).status());
  }
  ASSERT_OK(registry.Register(Request("alive"), At(10)).status());
  EXPECT_THAT(registry.Expire(At(10)), SizeIs(3));
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_NE(registry.Find(name), nullptr) << name;
  }
  registry.ForgetLost([](absl::string_view name) { return name != "b"; });
  EXPECT_EQ(registry.Find("b"), nullptr);
  EXPECT_EQ(registry.List().size(), 3);
}

TEST(StageStateTest, NothingLeavesLostAndIllegalMovesAreNamed) {
  for (int to = Stage::STATE_REGISTERED; to <= Stage::STATE_LOST; ++to) {
    EXPECT_THAT(
        CheckTransition(Stage::STATE_LOST, Stage::State(to)),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("LOST")));
  }
  EXPECT_THAT(CheckTransition(Stage::STATE_REGISTERED, Stage::STATE_RUNNING),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("REGISTERED cannot become RUNNING")));
  for (const Stage::State from :
       {Stage::STATE_REGISTERED, Stage::STATE_ASSIGNED, Stage::STATE_READY,
        Stage::STATE_RUNNING}) {
    EXPECT_TRUE(CheckTransition(from, Stage::STATE_LOST).ok());
  }
}

TEST(RegistryTest, SkewIsWhatHeartbeatsSayLessTheirWay) {
  Registry registry({});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  const auto skew = [&registry] {
    return registry.ToProto(*registry.Find("stage-0"), At(9));
  };
  EXPECT_FALSE(skew().has_clock_skew());
  const absl::Time wall = absl::FromUnixSeconds(1000000);
  // Its clock is 5 s ahead; heartbeats take 300, 20 and 100 ms.
  for (const int way : {300, 20, 100}) {
    v1::Heartbeat beat;
    *beat.mutable_wall_time() = common::time::ToProto(wall + absl::Seconds(5) -
                                                      absl::Milliseconds(way));
    registry.Beat("stage-0", beat, At(1), wall);
  }
  EXPECT_EQ(common::time::FromProto(skew().clock_skew()),
            absl::Milliseconds(4980));
  // A clock that was set is seen after a few heartbeats; nonsense is bounded.
  v1::Heartbeat beat;
  beat.mutable_wall_time()->set_seconds(std::numeric_limits<int64_t>::min());
  for (int i = 0; i < 8; ++i) registry.Beat("stage-0", beat, At(2), wall);
  EXPECT_LT(common::time::FromProto(skew().clock_skew()), -absl::Hours(1000));
  EXPECT_GT(common::time::FromProto(skew().clock_skew()),
            -absl::InfiniteDuration());
}

TEST(RegistryTest, HeartbeatsThatWaitedInAGapTellNothingOfClocks) {
  Registry registry({.heartbeat = absl::Seconds(1)});
  ASSERT_OK(registry.Register(Request("stage-0"), At(0)).status());
  const absl::Time wall = absl::FromUnixSeconds(1000000);
  const auto beat = [&registry, wall](double at, absl::Duration way) {
    v1::Heartbeat heartbeat;
    *heartbeat.mutable_wall_time() = common::time::ToProto(wall - way);
    registry.Beat("stage-0", heartbeat, At(at), wall);
    return registry.Find("stage-0")->clock_skew();
  };
  // The coordinator was stopped for 12 s, and now reads what came meanwhile.
  registry.Forgive(absl::Seconds(12), At(13));
  EXPECT_FALSE(beat(13, absl::Seconds(11)).has_value());
  EXPECT_FALSE(beat(13.1, absl::Seconds(10)).has_value());
  EXPECT_EQ(beat(14, absl::ZeroDuration()), absl::ZeroDuration());
}

}  // namespace
}  // namespace penstock::coordinator::registry
