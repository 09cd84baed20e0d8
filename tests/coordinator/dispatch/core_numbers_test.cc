// Numbers that a stage says and that cannot be: the job fails and names it,
// the coordinator goes on.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::HasSubstr;
using v1::Job;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// A job of two stages with evaluations, of which stage-1, with the head, is
// changed by `change`; and after it one that it does as it should.
Job RunWith(const std::function<void(FakeStage& stage)>& change) {
  FakeCluster cluster;
  cluster.Start(2);
  const auto run = [&cluster] {
    NewJob job = TinyJob(2, 2);
    job.spec.data.validation = {{.share_millionths = 100000}};
    job.spec.evaluate = {{.every = 1, .batches = 1}};
    EXPECT_OK(cluster.Create(job).status());
    cluster.Run();
    return cluster.Job();
  };
  change(cluster.stage(1));
  const Job failed = run();
  cluster.stage(1).memory.reset();
  cluster.stage(1).peak_memory.reset();
  cluster.stage(1).valid_tokens = cluster.stage(1).evaluated_tokens = 4;
  cluster.stage(1).sequence_length = 0;
  EXPECT_EQ(run().state(), Job::STATE_SUCCEEDED);
  return failed;
}

void ExpectBlamed(const Job& job, const std::string& what) {
  EXPECT_EQ(job.state(), Job::STATE_FAILED);
  EXPECT_EQ(job.reason(), Job::STATE_REASON_INTERNAL);
  EXPECT_EQ(job.cause().stage_name(), "stage-1");
  EXPECT_THAT(job.cause().message(), HasSubstr(what));
}

TEST(CoreNumbersTest, ValidTokens) {
  ExpectBlamed(RunWith([](FakeStage& stage) { stage.valid_tokens = kMost; }),
               "valid tokens in micro-batch 0, of 16");
}

TEST(CoreNumbersTest, ValidTokensOfAnEvaluation) {
  ExpectBlamed(RunWith([](FakeStage& stage) { stage.evaluated_tokens = 33; }),
               "33 valid tokens in the evaluation of step 1, of 32");
  ExpectBlamed(RunWith([](FakeStage& stage) { stage.evaluated_tokens = -1; }),
               "-1 valid tokens in the evaluation");
}

TEST(CoreNumbersTest, MemoryOfAnAssembly) {
  ExpectBlamed(RunWith([](FakeStage& stage) {
                 stage.memory = v1::MemoryBytes();
                 stage.memory->set_parameters(kMost);
                 stage.memory->set_gradients(kMost);
               }),
               "bytes of one kind of memory");
}

TEST(CoreNumbersTest, MemoryOfTheWholeJob) {
  ExpectBlamed(RunWith([](FakeStage& stage) {
                 stage.peak_memory = v1::MemoryBytes();
                 stage.peak_memory->set_workspace(-1);
               }),
               "-1 bytes of one kind of memory");
}

TEST(CoreNumbersTest, LengthOfASequence) {
  for (const int64_t length : {int64_t{17}, kMost}) {
    FakeCluster cluster;
    cluster.Start(1);
    cluster.stage(0).sequence_length = length;
    ASSERT_OK(cluster.Create(TinyJob(1, 2)).status());
    cluster.Run();
    EXPECT_THAT(cluster.Ended(Job::STATE_FAILED, Job::STATE_REASON_INVALID_SPEC)
                    .cause()
                    .message(),
                HasSubstr("data.train: has sequences of"));
  }
}

TEST(CoreNumbersTest, StepsOfReportsAndAcks) {
  for (const int64_t step : {std::numeric_limits<int64_t>::min(), int64_t{0}}) {
    for (const bool ack : {false, true}) {
      FakeCluster cluster;
      cluster.RunThreeStages();
      v1::StageMessage message;
      if (ack) {
        message.mutable_apply_ack()->set_step(step);
      } else {
        message.mutable_step_report()->set_step(step);
      }
      Actions actions;
      EXPECT_EQ(
          cluster.core->Receive(2, message, cluster.now(), actions).code(),
          absl::StatusCode::kInvalidArgument);
      cluster.CarryOut(actions);
      cluster.Run();
      ExpectBlamed(cluster.Job(), "step");
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
