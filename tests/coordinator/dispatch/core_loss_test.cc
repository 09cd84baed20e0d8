// Stages that are lost: what is said of it, and many at once.
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using v1::Job;

TEST(CoreLossTest, ALossSaysWhatTheStageWasAt) {
  FakeCluster cluster;
  cluster.RunThreeStages();
  v1::Heartbeat& beat = cluster.beats["stage-1"];
  beat.set_head_command("F stage 1 micro-batch 3 of step 1");
  cluster.Advance(absl::Seconds(2));
  cluster.silent["stage-1"] = true;
  cluster.Advance(absl::Seconds(11));
  const Job job =
      cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(
      job.cause().message(),
      HasSubstr("at its last heartbeat, 10s before, it was at F stage 1 "
                "micro-batch 3 of step 1"));
}

// Of the lost ones only the newest are kept for people to see.
TEST(CoreLossTest, MoreStagesMayBeLostAtOnceThanAreKept) {
  FakeCluster cluster(Options{.registry = {.lost_kept = 1}});
  cluster.RunThreeStages();
  for (const char* name : {"stage-0", "stage-1", "stage-2"}) {
    cluster.silent[name] = true;
  }
  cluster.Advance(absl::Seconds(11));
  const Job job =
      cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_THAT(job.cause().message(), HasSubstr("silent"));
  EXPECT_THAT(cluster.closed, SizeIs(3));
  EXPECT_THAT(cluster.core->ListStages(cluster.now()), SizeIs(1));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
