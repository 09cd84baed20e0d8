// Steps whose numbers are not finite, or that have none.

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using v1::Job;

TEST(CoreNonfiniteTest, FailsNamingStageTensorAndStep) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).nonfinite = "transformer.h.0.ln_1.weight";
  cluster.stage(0).nonfinite_step = 2;
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  const Job job = cluster.Job();
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_NONFINITE);
  EXPECT_EQ(job.cause().stage_name(), "stage-0");
  EXPECT_THAT(
      job.cause().message(),
      AllOf(HasSubstr("step 2"), HasSubstr("transformer.h.0.ln_1.weight")));
  EXPECT_EQ(job.step(), 1);
  EXPECT_EQ(cluster.stage(1).releases().size(), 1);
}

TEST(CoreNonfiniteTest, OrIsSkippedOnEveryStage) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).nonfinite = "transformer.wpe.weight";
  cluster.stage(0).nonfinite_step = 2;
  NewJob job = TinyJob(2, 2);
  job.spec.optimizer.on_nonfinite = spec::OnNonfinite::kSkip;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cluster.stage(i).releases().size(), 3);
    EXPECT_EQ(cluster.stage(i).releases()[1].decision(),
              v1::ReleaseStep::DECISION_SKIP);
    EXPECT_EQ(cluster.stage(i).releases()[2].adam_t(), 2);
  }
  EXPECT_EQ(cluster.Occurrences("NONFINITE").size(), 1);
  EXPECT_THAT(cluster.File("metrics.jsonl"), HasSubstr("\"skipped\":true"));
}

TEST(CoreNonfiniteTest, ARunOfSkipsIsSaidAtItsEndsOnly) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).nonfinite = "transformer.wpe.weight";
  cluster.stage(0).nonfinite_step = 2;
  cluster.stage(0).nonfinite_until = 100;
  NewJob job = TinyJob(2, 2, 102);
  job.spec.optimizer.on_nonfinite = spec::OnNonfinite::kSkip;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  const auto said = cluster.Occurrences("NONFINITE");
  ASSERT_EQ(said.size(), 2);
  EXPECT_THAT(said[0].message(), HasSubstr("step 2: "));
  EXPECT_EQ(said[1].message(), "steps 2 to 100, 99 in a row, were skipped");
}

TEST(CoreNonfiniteTest, AHundredSkipsInARowAreTheEnd) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(1).nonfinite = "transformer.wpe.weight";
  cluster.stage(1).nonfinite_step = 3;
  cluster.stage(1).nonfinite_until = 1000;
  NewJob job = TinyJob(2, 2, 1000);
  job.spec.optimizer.on_nonfinite = spec::OnNonfinite::kSkip;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_FAILED);
  EXPECT_EQ(cluster.Job().reason(), Job::STATE_REASON_NONFINITE);
  EXPECT_EQ(cluster.Job().cause().stage_name(), "stage-1");
  EXPECT_EQ(cluster.Job().step(), 101);
  EXPECT_THAT(cluster.Job().cause().message(),
              AllOf(HasSubstr("step 102: "), HasSubstr("wpe.weight on stage-1"),
                    HasSubstr("steps 3 to 102, 100 in a row, were skipped"),
                    HasSubstr("lower the learning rate")));
}

TEST(CoreNonfiniteTest, AStepWithoutAValidTokenIsReported) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).loss = 0;
  cluster.stage(0).valid_tokens = 0;
  ASSERT_OK(cluster.Create(TinyJob(1, 2, 1)).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  EXPECT_EQ(cluster.Occurrences("NO_VALID_TOKENS").size(), 1);
  EXPECT_THAT(cluster.File("metrics.jsonl"),
              AllOf(HasSubstr("\"loss\":null"),
                    HasSubstr("\"nonfinite\":[\"loss\",\"grad_norm\"]")));
}

TEST(CoreNonfiniteTest, AnEvaluationWithoutAValidTokenIsReportedOnce) {
  FakeCluster cluster;
  cluster.Start(1);
  cluster.stage(0).evaluated_tokens = 0;
  NewJob job = TinyJob(1, 2, 4);
  job.spec.data.validation = {{.share_millionths = 100000}};
  job.spec.evaluate = {{.every = 2, .batches = 1}};
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  const auto told = cluster.Occurrences("NO_VALID_TOKENS");
  ASSERT_EQ(told.size(), 1);
  EXPECT_EQ(told[0].severity(), v1::Occurrence::SEVERITY_WARNING);
  EXPECT_EQ(told[0].step(), 2);
  EXPECT_THAT(told[0].message(), HasSubstr("the evaluation after step 2"));
  EXPECT_THAT(cluster.File("metrics.jsonl"),
              HasSubstr("\"nonfinite\":[\"validation_loss\"]"));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
