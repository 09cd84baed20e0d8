// Sessions with coordinators of the past, and what a Hello may say.
#include <cstdint>
#include <limits>
#include <string>

#include "coordinator/dispatch/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using penstock::testing::StatusIs;
using ::testing::HasSubstr;
using v1::Job;

TEST(CoreSessionTest, AStaleCoordinatorIsRefusedByItsOwnCore) {
  FakeCluster cluster;
  cluster.Start(1);
  v1::Hello hello = cluster.stage(0).Hello();
  hello.set_term(2);
  Actions actions;
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("term 2")));
  hello.set_term(1);
  hello.set_epoch(5);
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 5")));
  hello.set_stage_name("nobody");
  hello.set_epoch(0);
  EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
              StatusIs(absl::StatusCode::kNotFound));
}

// Numbers are the stage's word: none of them ends the coordinator.
TEST(CoreSessionTest, AHelloWithNumbersThatCannotBeChangesNothing) {
  FakeCluster cluster(Options{.term = 3});
  cluster.Start(2);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const auto refused = [&](const v1::Hello& hello, const std::string& what) {
    Actions actions;
    EXPECT_THAT(cluster.core->OpenSession(99, hello, cluster.now(), actions),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
    EXPECT_TRUE(actions.empty());
  };
  for (const int64_t number : {kLeast, int64_t{-1}, kMost}) {
    v1::Hello hello = cluster.stage(0).Hello();
    hello.set_term(1);
    hello.set_epoch(number);
    refused(hello, "epoch");
    hello = cluster.stage(0).Hello();
    hello.set_acked_seq(number);
    refused(hello, "acked_seq");
    hello = cluster.stage(0).Hello();
    hello.set_applied_step(number);
    refused(hello, "applied_step");
    hello = cluster.stage(0).Hello();
    hello.set_term(number);
    refused(hello, "term");
  }
  v1::Hello hello = cluster.stage(0).Hello();
  hello.set_stage_name("stage-0\nis well");
  refused(hello, "stage name");
  // Nobody else is the worse for it.
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

// One stray stage has the highest epoch that is believed: the others' are above
// it from then on, and are believed too.
TEST(CoreSessionTest, AHighEpochOfAFormerCoordinatorDoesNotShutOthersOut) {
  FakeCluster cluster(Options{.term = 3});
  cluster.Start(2);
  v1::Hello hello = cluster.stage(0).Hello();
  hello.set_term(2);
  hello.set_epoch(int64_t{1} << 53);
  Actions actions;
  ASSERT_OK(cluster.core->OpenSession(99, hello, cluster.now(), actions));
  cluster.CarryOut(actions);
  cluster.Connect(cluster.stage(0));
  cluster.Run();
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  EXPECT_GT(cluster.stage(1).epoch(), hello.epoch());
  cluster.Disconnect(cluster.stage(1));
  cluster.Connect(cluster.stage(1));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreSessionTest, AStageWithAJobOfAFormerCoordinatorDropsIt) {
  FakeCluster cluster(Options{.term = 3});
  FakeStage& stage =
      cluster.AddStage("stage-0", "00000000-0000-4000-8000-000000000000");
  v1::CoordinatorMessage old;
  old.set_term(2);
  old.set_epoch(8);
  old.set_seq(1);
  old.mutable_check_inputs();
  stage.Take(old);
  Actions actions;
  ASSERT_OK(
      cluster.core->RegisterStage(stage.Registration(), cluster.now(), actions)
          .status());
  stage.outbox().clear();
  cluster.Connect(stage);
  EXPECT_GT(stage.epoch(), 8);
  cluster.Run();
  ASSERT_OK(cluster.Create(TinyJob(1, 1)).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreSessionTest, AReportThatIsSaidAgainDoesNotTurnItsStageBack) {
  FakeCluster cluster;
  cluster.RunThreeStages();
  // Step 1 is applied everywhere; step 2 waits for stage-2.
  cluster.stage(2).reports_steps = true;
  cluster.stage(2).Wake();
  cluster.stage(2).reports_steps = false;
  cluster.Run();
  const auto step = [&cluster] {
    return cluster.core->GetStage("stage-0", cluster.now())->step();
  };
  ASSERT_EQ(step(), 1);
  v1::StageMessage again;
  again.mutable_step_report()->set_step(1);
  Actions actions;
  ASSERT_OK(cluster.core->Receive(1, again, cluster.now(), actions));
  EXPECT_EQ(step(), 1);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
