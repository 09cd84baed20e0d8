// Plans are made elsewhere: what the core does meanwhile, and with the answer.
#include <string>

#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/job_plan.h"
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

class CorePlanningTest : public ::testing::Test {
 protected:
  // Two stages have seen the job's inputs.
  void SetUp() override {
    cluster_.makes_plans = false;
    cluster_.Start(2);
    NewJob job = TinyJob(2, 4);
    job.positions.AddFilePosition("pipeline.memory_limit", 3, 5);
    ASSERT_OK(cluster_.Create(job).status());
    cluster_.Run();
    ASSERT_THAT(cluster_.plans, SizeIs(1));
  }

  FakeCluster cluster_;
};

TEST_F(CorePlanningTest, TheJobWaitsAndEverythingElseGoesOn) {
  cluster_.Advance(absl::Minutes(4));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_PLANNING);
  EXPECT_FALSE(cluster_.AnyFile());
  for (const v1::Stage& stage : cluster_.core->ListStages(cluster_.now())) {
    EXPECT_EQ(stage.state(), v1::Stage::STATE_ASSIGNED);
  }
  EXPECT_THAT(cluster_.Occurrences("COORDINATOR_PAUSED"), IsEmpty());
  cluster_.Answer(MakePlanOf(cluster_.plans[0]));
  cluster_.Run();
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
}

TEST_F(CorePlanningTest, ARefusalFailsTheJobAtItsPlaceAndLeavesNoFolder) {
  MakePlan smaller = cluster_.plans[0];
  smaller.request.device_memory = 1000;
  cluster_.Answer(MakePlanOf(smaller));
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_OUT_OF_MEMORY);
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("tiny.yaml:3:5: pipeline.memory_limit"),
                    HasSubstr("more than its limit of 1000")));
  EXPECT_FALSE(cluster_.AnyFile());
}

TEST_F(CorePlanningTest, AnAnswerForAJobThatHasEndedChangesNothing) {
  Actions actions;
  ASSERT_OK(
      cluster_.core->CancelJob(cluster_.Job().id(), cluster_.now(), actions));
  cluster_.CarryOut(actions);
  cluster_.Answer(MakePlanOf(cluster_.plans[0]));  // It is stopping.
  cluster_.Run();
  const Job job = cluster_.Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
  cluster_.Answer(MakePlanOf(cluster_.plans[0]));
  EXPECT_EQ(cluster_.Job().revision(), job.revision());
}

TEST_F(CorePlanningTest, AStageThatIsLostMeanwhileIsTheCause) {
  cluster_.silent["stage-1"] = true;
  cluster_.Advance(absl::Seconds(11));
  cluster_.Answer(MakePlanOf(cluster_.plans[0]));
  cluster_.Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
}

TEST_F(CorePlanningTest, APlanThatIsNeverMadeFailsTheJob) {
  cluster_.Advance(absl::Minutes(5));
  EXPECT_THAT(cluster_.Occurrences("INTERNAL"), SizeIs(1));
  const Job job = cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
  EXPECT_THAT(job.cause().message(),
              HasSubstr("has not planned the job after 5m"));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
