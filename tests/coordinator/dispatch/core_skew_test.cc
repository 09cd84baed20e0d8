// A stage's clock that is off: told once, and nothing is decided by it.
#include "common/time/proto_time.h"
#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1::Job;

// Two stages, running, the barrier waiting for stage-1.
class CoreSkewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.Start(2);
    cluster_.stage(1).reports_steps = false;
    ASSERT_OK(cluster_.Create(TinyJob(2, 2)).status());
    cluster_.Run();
  }
  // Seconds in which stage-1's clock is off by `skew`.
  void Beat(absl::Duration skew, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      *cluster_.beats["stage-1"].mutable_wall_time() =
          common::time::ToProto(cluster_.clock.Now() + absl::Seconds(1) + skew);
      cluster_.Advance(absl::Seconds(1));
    }
  }

  FakeCluster cluster_;
};

TEST_F(CoreSkewTest, IsToldOnceWithHostAndDirection) {
  Beat(absl::Seconds(-312), 5);
  const auto told = cluster_.Occurrences("CLOCK_SKEW");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].stage_name(), "stage-1");
  EXPECT_THAT(told[0].message(),
              AllOf(HasSubstr("stage-1 on host host-of-stage-1 is 5m1"),
                    HasSubstr("s behind the coordinator's")));
  ASSERT_OK_AND_ASSIGN(const v1::Stage stage,
                       cluster_.core->GetStage("stage-1", cluster_.now()));
  // Within a second: the heartbeat is said at the end of its second, or before.
  EXPECT_GE(common::time::FromProto(stage.clock_skew()), absl::Seconds(-312));
  EXPECT_LE(common::time::FromProto(stage.clock_skew()), absl::Seconds(-311));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
}

TEST_F(CoreSkewTest, ALittleIsNothingToSay) {
  Beat(absl::Seconds(0.9), 5);
  EXPECT_THAT(cluster_.Occurrences("CLOCK_SKEW"), IsEmpty());
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
