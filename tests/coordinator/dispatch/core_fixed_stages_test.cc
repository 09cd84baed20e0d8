// The stages of one `penstock run`: they come once, and none other does.
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using v1::Job;

// Children of one `penstock run`: a job waits for stage-0 and stage-1.
class CoreFixedStagesTest : public ::testing::Test {
 protected:
  void CreateWithOneStage() {
    cluster_.Start(1);
    ASSERT_OK(cluster_.Create(TinyJob(2, 2)).status());
    cluster_.Run();
    ASSERT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
  }
  absl::Status Exit(const std::string& name, int64_t pid, int code) {
    const absl::Status status = cluster_.ReportExit(name, pid, code);
    cluster_.Run();
    return status;
  }

  FakeCluster cluster_{
      Options{.queue_deadline = absl::Seconds(60), .fixed_stages = true}};
};

TEST_F(CoreFixedStagesTest, OneThatEndsBeforeItRegistersFailsTheWaitingJob) {
  CreateWithOneStage();
  ASSERT_OK(Exit("stage-1", 77, 137));
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(
      job.cause().message(),
      HasSubstr("(pid 77) was killed by signal 9 before it registered"));
  EXPECT_FALSE(cluster_.File("summary.json").empty());
}

TEST_F(CoreFixedStagesTest, ItsOwnRefusalToStartIsToldApart) {
  CreateWithOneStage();
  ASSERT_OK(Exit("stage-1", 77, 2));
  EXPECT_EQ(cluster_.Job().cause().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST_F(CoreFixedStagesTest, OneThatRegisteredAndEndsFailsTheWaitingJob) {
  CreateWithOneStage();
  const FakeStage& stage = cluster_.stage(0);
  ASSERT_OK(Exit(stage.name(), stage.Registration().pid(), 1));
  EXPECT_EQ(cluster_.Job().reason(), Job::STATE_REASON_STAGE_LOST);
  EXPECT_EQ(cluster_.Job().cause().stage_name(), "stage-0");
}

TEST_F(CoreFixedStagesTest, AJobThatComesAfterItFailsAtOnce) {
  ASSERT_OK(Exit("stage-1", 77, 127));
  ASSERT_OK(cluster_.Create(TinyJob(2, 2)).status());
  EXPECT_EQ(cluster_.Job().reason(), Job::STATE_REASON_STAGE_LOST);
}

TEST_F(CoreFixedStagesTest, ARefusedRegistrationFailsTheWaitingJob) {
  CreateWithOneStage();
  v1::RegisterStageRequest request = cluster_.stage(0).Registration();
  request.set_stage_name("stage-1");
  request.mutable_protocol()->set_lowest(7);
  request.mutable_protocol()->set_highest(9);
  Actions actions;
  EXPECT_THAT(
      cluster_.core->RegisterStage(request, cluster_.now(), actions).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition));
  cluster_.CarryOut(actions);
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.cause().reason(), "PROTOCOL_VERSION_UNSUPPORTED");
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
}

TEST_F(CoreFixedStagesTest, ATakenNameIsTriedAgainAndFailsNothing) {
  CreateWithOneStage();
  v1::RegisterStageRequest request = cluster_.stage(0).Registration();
  request.set_incarnation("00000000-0000-4000-8000-0000000000ff");
  Actions actions;
  EXPECT_THAT(
      cluster_.core->RegisterStage(request, cluster_.now(), actions).status(),
      StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
}

TEST_F(CoreFixedStagesTest, AJobThatIsCancelledInTheQueueHasASummary) {
  CreateWithOneStage();
  EXPECT_FALSE(cluster_.AnyFile());
  Actions actions;
  ASSERT_OK(cluster_.core->CancelJob("tiny", cluster_.now(), actions).status());
  cluster_.CarryOut(actions);
  cluster_.Run();
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_CANCELLED);
  EXPECT_EQ(nlohmann::json::parse(cluster_.File("summary.json"))["state"],
            "CANCELLED");
}

TEST_F(CoreFixedStagesTest, StagesThatNeverComeAreMissedAtTheDeadline) {
  CreateWithOneStage();
  cluster_.Advance(absl::Seconds(31));
  ASSERT_EQ(cluster_.Occurrences("WAITING_FOR_STAGES").size(), 1);
  EXPECT_THAT(cluster_.Occurrences("WAITING_FOR_STAGES")[0].message(),
              HasSubstr("2 stages of pool default, device cuda or cpu; "
                        "free: stage-0"));
  cluster_.Disconnect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(5));
  ASSERT_EQ(cluster_.Job().state(), Job::STATE_QUEUED);
  cluster_.Connect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(25));
  const Job job = cluster_.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_NO_STAGES);
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("waited 1m"), HasSubstr("free: stage-0")));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
