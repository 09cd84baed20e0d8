// Sessions with coordinators of the past.

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

}  // namespace
}  // namespace penstock::coordinator::dispatch
