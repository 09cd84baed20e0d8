// The folder that the trained model is made in: all stages write in the same
// one, it gets its name when it is whole, and nothing of half a model stays.
#include <cerrno>
#include <string>
#include <vector>

#include "common/status/file_error.h"
#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using Change = ChangeJobFolder::Change;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::Job;

class CoreOutputTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.Start(2); }
  void Run() {
    ASSERT_OK(cluster_.Create(TinyJob(2, 4)).status());
    cluster_.Run();
  }
  std::vector<Change> Changes() const {
    std::vector<Change> changes;
    for (const auto& change : cluster_.changes) {
      changes.push_back(change.change);
    }
    return changes;
  }
  // All reports are in, and the coordinator's own disk hangs.
  void HangAtTheEnd() {
    cluster_.stage(1).reports_steps = false;
    Run();
    cluster_.changes_folders = false;
    cluster_.stage(1).reports_steps = true;
    cluster_.stage(1).Wake();
    cluster_.Run();
    ASSERT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
    ASSERT_EQ(cluster_.changes.back().change, Change::kPublish);
  }
  void Answer(const absl::Status& status) {
    cluster_.changes_folders = true;
    Actions actions;
    cluster_.core->FolderChanged({.job_id = cluster_.Job().id(),
                                  .change = cluster_.changes.back().change,
                                  .status = status},
                                 cluster_.now(), actions);
    cluster_.CarryOut(actions);
    cluster_.Run();
  }

  FakeCluster cluster_;
};

TEST_F(CoreOutputTest, IsMadeConfirmedAndPublishedWhenTheIndexIsThere) {
  Run();
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
  EXPECT_THAT(Changes(),
              ElementsAre(Change::kMake, Change::kConfirm, Change::kPublish));
  const std::string folder = "/runs/tiny/" + cluster_.changes.front().name;
  EXPECT_THAT(cluster_.changes.front().name, HasSubstr(".model-tmp-"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cluster_.stage(i).probe().directory(), folder);
    EXPECT_EQ(cluster_.stage(i).end().model_directory(), folder);
    EXPECT_EQ(cluster_.stage(i).probe().contents().size(), 32);
  }
  EXPECT_NE(cluster_.stage(0).probe().file(), cluster_.stage(1).probe().file());
  EXPECT_EQ(cluster_.changes.back().to, "model");
  EXPECT_NE(cluster_.File("model/model.safetensors.index.json"), "");
}

TEST_F(CoreOutputTest,
       AStageThatCannotWriteThereIsNamedBeforeAnythingIsLoaded) {
  v1::Cause cause;
  cause.set_code(static_cast<int>(absl::StatusCode::kPermissionDenied));
  cause.set_reason("INPUT_NOT_VISIBLE");
  cause.set_message("create /runs/tiny/x: Permission denied");
  cluster_.stage(1).probe_failure = cause;
  Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_FALSE(job.has_start_time());
  EXPECT_EQ(cluster_.stage(0).assignments(), 0);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("stage-1 on host host-of-stage-1 cannot write in "
                              "the run directory"),
                    HasSubstr("/runs/tiny/x: Permission denied")));
  EXPECT_EQ(Changes().back(), Change::kRemove);
}

TEST_F(CoreOutputTest, AStageThatWritesToAnotherDiskIsNamed) {
  cluster_.stage(0).shares_disk = false;
  Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_EQ(job.cause().stage_name(), "stage-0");
  EXPECT_THAT(job.cause().message(), HasSubstr("stage-0 on host"));
  EXPECT_EQ(cluster_.stage(0).assignments(), 0);
  EXPECT_EQ(Changes().back(), Change::kRemove);
}

TEST_F(CoreOutputTest, AStageThatHangsAtItsDiskIsNamedWithinTenSeconds) {
  cluster_.stage(1).answers_probe = false;
  Run();
  cluster_.Advance(absl::Seconds(9));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_PLANNING);
  cluster_.Advance(absl::Seconds(2));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(job.cause().message(),
              AllOf(HasSubstr("the run directory /runs/tiny was not written to "
                              "for 10s by stage-1 on host host-of-stage-1")));
}

TEST_F(CoreOutputTest, ACoordinatorThatHangsAtItsDiskSaysSo) {
  cluster_.changes_folders = false;
  Run();
  cluster_.Advance(absl::Seconds(11));
  const auto told = cluster_.Occurrences("INPUT_NOT_VISIBLE");
  ASSERT_EQ(told.size(), 1);
  EXPECT_THAT(told[0].message(), HasSubstr("by stage-0"));
  // Its end waits as long for the summary.
  cluster_.Advance(absl::Seconds(10));
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
}

TEST_F(CoreOutputTest, AnAnswerWithoutASessionIsSaidInTheNext) {
  cluster_.stage(1).answers_probe = false;
  Run();
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.stage(1).AnswerProbe();
  cluster_.stage(1).outbox().clear();
  cluster_.Connect(cluster_.stage(1));
  cluster_.Run();
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
}

TEST_F(CoreOutputTest, OfAJobThatFailsWhileItIsWrittenNothingStays) {
  cluster_.stage(1).reports_steps = false;
  Run();
  cluster_.stage(1).Fail("DISK_FULL", "write x: No space left on device");
  cluster_.Run();
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_DISK_FULL);
  // Only after the stages have let go of it.
  EXPECT_THAT(Changes(),
              ElementsAre(Change::kMake, Change::kConfirm, Change::kRemove));
}

TEST_F(CoreOutputTest, OfACancelledJobNothingStays) {
  cluster_.stage(1).reports_steps = false;
  Run();
  Actions actions;
  ASSERT_OK(
      cluster_.core->CancelJob(cluster_.Job().id(), cluster_.now(), actions));
  cluster_.CarryOut(actions);
  cluster_.Run();
  cluster_.Ended(Job::STATE_CANCELLED, Job::STATE_REASON_USER);
  EXPECT_EQ(Changes().back(), Change::kRemove);
}

TEST_F(CoreOutputTest, AModelThatCannotGetItsNameIsNoSuccess) {
  cluster_.folder_failures[Change::kPublish] =
      common::status::FileError(EROFS, "renaming a to b");
  Run();
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_EQ(job.cause().message(),
            "the job's results: renaming a to b: Read-only file system; the "
            "trained model is whole, in /runs/tiny/.model-tmp-1-1");
  EXPECT_EQ(Changes().back(), Change::kPublish);  // And stays.
}

TEST_F(CoreOutputTest, WhenAllIsWrittenNeitherALossNorACancelMatters) {
  HangAtTheEnd();
  cluster_.Disconnect(cluster_.stage(0));
  cluster_.Advance(absl::Seconds(20));  // More than the lease.
  Actions actions;
  ASSERT_OK(
      cluster_.core->CancelJob(cluster_.Job().id(), cluster_.now(), actions));
  cluster_.CarryOut(actions);
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  Answer(absl::OkStatus());
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
}

TEST_F(CoreOutputTest, ResultsThatSomebodyTookAreAWarning) {
  cluster_.stage(1).reports_steps = false;
  Run();
  Actions actions;
  cluster_.core->LinesLost(cluster_.Job().id(), "metrics.jsonl", cluster_.now(),
                           actions);
  cluster_.CarryOut(actions);
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  const auto told = cluster_.Occurrences("RESULTS_LOST");
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].severity(), v1::Occurrence::SEVERITY_WARNING);
  EXPECT_THAT(told[0].message(),
              HasSubstr("/metrics.jsonl was removed or cut"));
}

TEST_F(CoreOutputTest, ADiskThatHangsAtTheEndFailsTheJobInTime) {
  HangAtTheEnd();
  cluster_.Advance(absl::Minutes(9));
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  cluster_.Advance(absl::Minutes(2));
  const Job job =
      cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INPUT_NOT_VISIBLE);
  EXPECT_THAT(job.cause().message(),
              HasSubstr("which is whole, did not get its name for 10m"));
  EXPECT_EQ(Changes().back(), Change::kPublish);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
