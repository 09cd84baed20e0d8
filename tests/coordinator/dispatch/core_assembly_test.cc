// Assemblies and ends of jobs that do not come, and those that only take their
// time.

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using v1::Job;

TEST(CoreAssemblyFailureTest, MissingStagesAreNamedAtTheDeadline) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  cluster.Advance(absl::Seconds(121));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_FAILED);
  EXPECT_THAT(
      cluster.Job().cause().message(),
      AllOf(HasSubstr("not ready after"),
            EndsWith("stage-1 on host host-of-stage-1 (heard of just now)")));
  EXPECT_FALSE(cluster.File("summary.json").empty());
}

TEST(CoreAssemblyFailureTest, EdgesThatDoNotStandAreNamedWithTheirPeers) {
  FakeCluster cluster;
  cluster.Start(3);
  for (int i = 0; i < 3; ++i) cluster.stage(i).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(3, 2)).status());
  cluster.Run();
  v1::Edge& out = *cluster.beats["stage-0"].add_unconnected();
  out.set_target_stage(1);
  out.set_kind(v1::EDGE_KIND_ACTIVATION);
  v1::Edge& back = *cluster.beats["stage-0"].add_unconnected();
  back.set_source_stage(1);
  back.set_kind(v1::EDGE_KIND_GRADIENT);
  *cluster.beats["stage-1"].add_unconnected() = out;
  cluster.Advance(absl::Seconds(121));
  const std::string at = cluster.stage(1).Registration().data_address();
  const std::string at0 = cluster.stage(0).Registration().data_address();
  EXPECT_THAT(
      cluster.Job().cause().message(),
      AllOf(HasSubstr("stage-0 on host host-of-stage-0 (heard of just now) "
                      "waits for edge activation 0->1 of peer stage-1 at " +
                      at + ", gradient 1->0 of peer stage-1 at " + at),
            HasSubstr("stage-1 on host host-of-stage-1 (heard of just now) "
                      "waits for edge activation 0->1 of peer stage-0 at " +
                      at0),
            EndsWith("stage-2 on host host-of-stage-2 (heard of just now)")));
}

TEST(CoreEndTest, ALargeModelMayTakeItsTime) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_end = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  for (int tensor = 0; tensor < 12; ++tensor) {  // Two hours.
    cluster.Advance(absl::Minutes(9) + absl::Seconds(55));
    ASSERT_EQ(cluster.Job().state(), Job::STATE_RUNNING) << tensor;
    ++cluster.stage(1).progress;
  }
  cluster.stage(1).AnswerEnd();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreEndTest, AModelThatNobodyWritesOnFailsTheJob) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_end = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  cluster.Advance(absl::Minutes(5));
  ++cluster.stage(1).progress;
  cluster.Advance(absl::Minutes(9));
  ASSERT_EQ(cluster.Job().state(), Job::STATE_RUNNING);
  cluster.Advance(absl::Minutes(2));
  EXPECT_THAT(
      cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_TRANSPORT_TIMEOUT)
          .cause()
          .message(),
      AllOf(HasSubstr("not written after 15m"), HasSubstr("the last 10m"),
            HasSubstr("by stage-1 on host host-of-stage-1")));
}

TEST(CoreAssemblyFailureTest, AnAssemblyThatGetsOnMayTakeItsTime) {
  FakeCluster cluster;
  cluster.Start(3);
  for (int i = 1; i < 3; ++i) cluster.stage(i).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(3, 2)).status());
  cluster.Run();
  // One stage is ready, one waits for a peer, and one loads, a tensor every
  // 100 s: 20 minutes in all.
  for (int tensor = 0; tensor < 12; ++tensor) {
    cluster.Advance(absl::Seconds(100));
    ASSERT_EQ(cluster.Job().state(), Job::STATE_ASSEMBLING) << tensor;
    ++cluster.stage(2).progress;
  }
  cluster.stage(2).AnswerAssignment();
  cluster.Run();
  cluster.Advance(absl::Seconds(100));
  cluster.stage(1).AnswerAssignment();
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreAssemblyFailureTest, ButNotForEver) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).answers_assignment = false;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  for (int minute = 0; minute < 31; ++minute) {
    ASSERT_EQ(cluster.Job().state(),
              minute < 30 ? Job::STATE_ASSEMBLING : Job::STATE_FAILED)
        << minute;
    ++cluster.stage(1).progress;
    cluster.Advance(absl::Minutes(1));
  }
  EXPECT_THAT(cluster.Job().cause().message(),
              HasSubstr("not ready after 30m"));
}

// Only the coordinator decides: no stage gives up on a peer that still loads.
TEST(CoreAssemblyFailureTest, StagesConnectAsLongAsTheAssemblyLasts) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.stage(0).answers_assignment = false;
  cluster.Run();
  EXPECT_EQ(cluster.stage(0).assignment().connect_deadline().seconds(),
            absl::ToInt64Seconds(Options().assembly_deadline));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
