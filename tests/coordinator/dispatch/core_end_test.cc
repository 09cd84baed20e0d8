// The end of a job is told when its results are written, and nothing waits for
// that but the job itself; a disk that does not answer is named.
#include <string>
#include <vector>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using v1::Job;

class CoreResultsTest : public ::testing::Test {
 protected:
  // Two stages run a job until its last report is missing.
  void SetUp() override {
    cluster_.Start(2);
    cluster_.stage(1).reports_steps = false;
    ASSERT_OK(cluster_.Create(TinyJob(2, 4)).status());
    cluster_.Run();
    ASSERT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  }
  // It fails, and the disk hangs.
  void FailWithoutDisk() {
    cluster_.changes_folders = false;
    cluster_.stage(1).Fail("INTERNAL", "a fault");
    cluster_.Run();
  }
  void Flushed() {
    Actions actions;
    cluster_.core->FolderChanged({.job_id = cluster_.Job().id(),
                                  .change = ChangeJobFolder::Change::kFlush},
                                 cluster_.now(), actions);
    cluster_.CarryOut(actions);
  }

  FakeCluster cluster_;
};

TEST_F(CoreResultsTest, IsToldWhenTheResultsAreWritten) {
  FailWithoutDisk();
  EXPECT_NE(cluster_.File("summary.json"), "");
  EXPECT_THAT(cluster_.File("events.jsonl"), HasSubstr("RUNNING -> FAILED"));
  cluster_.Advance(absl::Seconds(9));
  const Job before = cluster_.Job();
  EXPECT_EQ(before.state(), Job::STATE_RUNNING);
  EXPECT_FALSE(before.has_end_time());
  EXPECT_EQ(before.summary_json(), "");
  Flushed();
  const Job job = cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
  EXPECT_EQ(job.summary_json(), cluster_.File("summary.json"));
  // The last event is the end, and the next one of its revision.
  const auto& events = cluster_.events();
  EXPECT_EQ(events.back().job().state(), Job::STATE_FAILED);
  EXPECT_EQ(events.back().revision(), job.revision());
  EXPECT_EQ(events[events.size() - 2].revision(), job.revision() - 1);
  EXPECT_THAT(cluster_.Occurrences("RESULTS_NOT_WRITTEN"), IsEmpty());
}

TEST_F(CoreResultsTest, OfAJobWhoseDiskHangsIsToldWithoutItsResults) {
  FailWithoutDisk();
  cluster_.Advance(absl::Seconds(10));
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
  const auto told = cluster_.Occurrences("RESULTS_NOT_WRITTEN");
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].severity(), v1::Occurrence::SEVERITY_WARNING);
  EXPECT_THAT(told[0].message(),
              AllOf(HasSubstr("/runs/tiny/summary.json is not written"),
                    HasSubstr("for 10s")));
  const size_t events = cluster_.events().size();
  Flushed();  // Too late: it is told once.
  EXPECT_EQ(cluster_.events().size(), events);
}

TEST_F(CoreResultsTest, AnotherJobHasTheStagesMeanwhile) {
  FailWithoutDisk();
  NewJob other = TinyJob(2, 4);
  other.request.set_run_directory("");
  cluster_.stage(1).reports_steps = true;
  ASSERT_OK(cluster_.Create(other).status());
  cluster_.Run();
  cluster_.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
}

TEST_F(CoreResultsTest, NobodyElseWritesToItsFolderMeanwhile) {
  FailWithoutDisk();
  EXPECT_THAT(cluster_.Create(TinyJob(2, 4)).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("which has not ended")));
}

TEST_F(CoreResultsTest, AStageThatDidNotDropTheJobMaySpeakMeanwhile) {
  cluster_.changes_folders = false;
  cluster_.Disconnect(cluster_.stage(1));
  cluster_.stage(0).Fail("INTERNAL", "a fault");
  cluster_.Run();
  cluster_.Advance(absl::Seconds(3));  // More than it has for the abort.
  ASSERT_EQ(cluster_.Occurrences("STAGE_DID_NOT_ABORT").size(), 1);
  const size_t events = cluster_.events().size();
  cluster_.stage(1).reports_steps = true;
  cluster_.stage(1).Wake();
  cluster_.stage(1).Fail("INTERNAL", "another fault");
  cluster_.Connect(cluster_.stage(1));
  cluster_.Run();
  ASSERT_OK(cluster_.ReportExit("stage-1", 1000 + '1', 137));
  EXPECT_EQ(cluster_.events().size(), events);  // Nobody waits for it.
  EXPECT_EQ(cluster_.Job().state(), Job::STATE_RUNNING);
  Flushed();
  cluster_.Ended(Job::STATE_FAILED, Job::STATE_REASON_INTERNAL);
}

TEST(CoreForgettingTest, OfEndedJobsSoManyAreKept) {
  FakeCluster cluster(Options{.ended_jobs_kept = 2});
  cluster.Start(1);
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    NewJob job = TinyJob(1, 1);
    job.request.set_run_directory("/runs/" + std::to_string(i));
    ASSERT_OK_AND_ASSIGN(const Job created, cluster.Create(job));
    ids.push_back(created.id());
    cluster.Run();
    cluster.Ended(Job::STATE_SUCCEEDED, Job::STATE_REASON_UNSPECIFIED);
  }
  ASSERT_EQ(cluster.forgotten.size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cluster.forgotten[i].job_id, ids[i]);
    EXPECT_EQ(cluster.forgotten[i].directory, "/runs/" + std::to_string(i));
    EXPECT_THAT(cluster.core->GetJob(ids[i]).status(),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(ids[i])));
    EXPECT_OK(cluster.core->GetJob(ids[i + 2]).status());
  }
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
