// The coordinator itself did not run for a while: stopped, or its machine was.
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1::Job;

class CorePauseTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.RunThreeStages(); }
  void ExpectLost(const std::string& stage) {
    const Job job =
        cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
    EXPECT_EQ(job.cause().stage_name(), stage);
  }

  FakeCluster cluster_;
};

TEST_F(CorePauseTest, IsNoFaultOfTheStages) {
  cluster_.Pause(absl::Seconds(12));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  const auto paused = cluster_.Occurrences("COORDINATOR_PAUSED");
  ASSERT_THAT(paused, SizeIs(1));
  EXPECT_THAT(paused[0].message(), HasSubstr("did not run for 12s"));
  for (const v1::Stage& stage : cluster_.core->ListStages(cluster_.now())) {
    EXPECT_EQ(stage.state(), v1::Stage::STATE_RUNNING) << stage.DebugString();
  }
  cluster_.Advance(absl::Seconds(9));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
}

TEST_F(CorePauseTest, AStageThatStaysSilentIsLostWithItsNewLease) {
  cluster_.silent["stage-1"] = true;
  cluster_.Pause(absl::Seconds(12));
  cluster_.Advance(absl::Seconds(9));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Advance(absl::Seconds(2));
  ExpectLost("stage-1");
}

TEST_F(CorePauseTest, ShortDelaysAreNothingToSay) {
  for (int i = 0; i < 20; ++i) {
    cluster_.Pause(absl::Seconds(3.4));
    cluster_.Advance(absl::Seconds(1));
  }
  EXPECT_THAT(cluster_.Occurrences("COORDINATOR_PAUSED"), IsEmpty());
}

// By how much a tick is late counts, not how long ago the one before was: where
// a heartbeat is a fifth of a lease, a busy host would forgive at each of them.
TEST(CorePauseRuleTest, ATickIsAQuarterOfALeaseLate) {
  FakeCluster cluster(Options{.registry = {.lease = absl::Seconds(5)}});
  cluster.RunThreeStages();
  cluster.Pause(absl::Seconds(1) + absl::Seconds(1.2));
  EXPECT_THAT(cluster.Occurrences("COORDINATOR_PAUSED"), IsEmpty());
  cluster.Pause(absl::Seconds(1) + absl::Seconds(1.25));
  EXPECT_THAT(cluster.Occurrences("COORDINATOR_PAUSED"), SizeIs(1));
}

TEST_F(CorePauseTest, AnAwakeCoordinatorIsNeverTakenForAPausedOne) {
  cluster_.Advance(absl::Minutes(2));
  EXPECT_THAT(cluster_.Occurrences("COORDINATOR_PAUSED"), IsEmpty());
}

TEST_F(CorePauseTest, EvidenceFromBeforeItIsStillMatched) {
  cluster_.stage(0).BreakEdge(0, 1);
  cluster_.Run();
  cluster_.Pause(absl::Seconds(12));
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.Run();
  ExpectLost("stage-1");
}

TEST_F(CorePauseTest, TheStallOfAJobIsCountedWithoutIt) {
  cluster_.Advance(absl::Seconds(9));
  cluster_.Pause(absl::Minutes(10));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  EXPECT_THAT(cluster_.Occurrences("STALLED"), IsEmpty());
  cluster_.Advance(absl::Seconds(2));
  EXPECT_THAT(cluster_.Occurrences("STALLED"), SizeIs(1));
}

TEST(CorePauseInAssemblyTest, InputsMayBeSeenAfterIt) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_check = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  cluster.Advance(absl::Seconds(8));
  cluster.Pause(absl::Seconds(30));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_PLANNING);
  cluster.stage(1).AnswerCheck();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
