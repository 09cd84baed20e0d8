// What was aborted is over, whatever the runner was at.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/stage_job_runner.h"
#include "tests/fakes/forwarding_transport.h"
#include "tests/server/service/stage_job_runner_case.h"

namespace penstock::server::service {
namespace {

using ::testing::HasSubstr;

using StageJobRunnerAbortTest = StageJobRunnerCase;

// Holds whoever asks for its edges, and notes who connects and who frees it.
class HeldTransport final : public tests::fakes::ForwardingTransport {
 public:
  struct Notes {
    common::sync::Notification connecting, asked, go_on;
    std::thread::id connected_on, freed_on;
  };
  HeldTransport(std::unique_ptr<transport::Transport> wrapped, Notes& notes)
      : ForwardingTransport(std::move(wrapped)), notes_(notes) {}
  ~HeldTransport() override { notes_.freed_on = std::this_thread::get_id(); }

  absl::Status Connect(absl::Time deadline) override {
    notes_.connected_on = std::this_thread::get_id();
    notes_.connecting.Notify();
    return ForwardingTransport::Connect(deadline);
  }
  std::vector<transport::Edge> Unconnected() const override {
    notes_.asked.Notify();
    notes_.go_on.WaitForNotification();
    return ForwardingTransport::Unconnected();
  }

 private:
  Notes& notes_;
};

TEST_F(StageJobRunnerAbortTest, AnAbortEndsAnAssemblyThatWaitsForItsPeers) {
  runner_->Assemble(1, AssignmentOf(2));  // Nobody is stage-1.
  connecting_.WaitForNotification();
  // Every edge leads to stage-1.
  EXPECT_EQ(runner_->heartbeat().unconnected_size(),
            AssignmentOf(2).edges_size());
  EXPECT_EQ(runner_->heartbeat().unconnected(0).DebugString(),
            AssignmentOf(2).edges(0).edge().DebugString());
  Abort(2, absl::UnavailableError("stage-1 died"));
  // No failure of its own comes before that, and no StageReady.
  const Reported next = Next();
  EXPECT_EQ(next.message.aborted().epoch(), 2) << next.message.DebugString();
  EXPECT_EQ(Status().state(), v1::Stage::STATE_REGISTERED);
  EXPECT_EQ(Status().last_error().message(), "stage-1 died");
}

// The coordinator finds the stage to blame by the edge.
TEST_F(StageJobRunnerAbortTest,
       AnEdgeThatBreaksDuringTheAssemblyIsToldAsAnEdge) {
  const auto neighbour = MakeNeighbour("stage-1");
  // Nobody is stage-2: both wait.
  runner_->Assemble(1, AssignmentOf(3, 0));
  neighbour->runner->Assemble(1, AssignmentOf(3, 1));
  connecting_.WaitForNotification();
  neighbour->connecting.WaitForNotification();
  Abort(2, absl::UnavailableError("stage-0 died"));
  // What the assembly itself would say comes before the answer to the probe.
  v1::ProbeOutput probe;
  probe.set_directory(dir_.path());
  probe.set_file("probe");
  neighbour->runner->ProbeOutput(1, probe);
  bool probed = false, told = false;
  while (!probed || !told) {
    const std::optional<Reported> next = neighbour->reports.Take();
    ASSERT_TRUE(next.has_value());
    if (next->message.has_output_probed()) {
      probed = true;
      continue;
    }
    ASSERT_TRUE(next->message.has_failure()) << next->message.DebugString();
    const v1::StageFailure& failure = next->message.failure();
    ASSERT_TRUE(failure.has_edge()) << failure.DebugString();
    EXPECT_EQ(failure.cause().reason(), "EDGE_BROKEN");
    EXPECT_THAT(failure.cause().message(), HasSubstr("peer stage-0"));
    told = true;
  }
  EXPECT_TRUE(neighbour->reports.empty());
}

TEST_F(StageJobRunnerAbortTest, AnAbortEndsTheReadingOfFiles) {
  // A file of holes that takes minutes to read.
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 40);
  const auto begun = [this](int64_t before) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (runner_->heartbeat().progress() == before && absl::Now() < end) {
    }
    return runner_->heartbeat().progress() > before;
  };
  runner_->CheckInputs(1, Check());
  ASSERT_TRUE(begun(0));
  Abort(2, absl::CancelledError("cancelled"));
  EXPECT_EQ(Next().message.aborted().epoch(), 2);

  const int64_t before = runner_->heartbeat().progress();
  runner_->Assemble(3, AssignmentOf(1));
  ASSERT_TRUE(begun(before));
  // As at the end of the daemon.
  runner_.reset();
  EXPECT_TRUE(Next().message.has_aborted());
  EXPECT_TRUE(reports_.empty());
}

// Neither a heartbeat nor a monitor's question may end up joining an engine and
// freeing memory, and the coordinator counts on what Aborted says.
TEST_F(StageJobRunnerAbortTest, TheWorkerFreesAJobOnceNobodyReadsItAnyMore) {
  HeldTransport::Notes notes;
  StageResources resources = resources_;
  resources.make_transport = [&](const transport::TransportOptions& options)
      -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
    ASSIGN_OR_RETURN(auto joined, hub_.Join("stage-0", options));
    return std::make_unique<HeldTransport>(std::move(joined), notes);
  };
  common::sync::Notification aborted;
  StageJobRunner runner(resources, [&](int64_t, v1::StageMessage message) {
    if (message.has_aborted() && !aborted.HasBeenNotified()) aborted.Notify();
  });
  runner.Assemble(1, AssignmentOf(2));  // Nobody is stage-1.
  notes.connecting.WaitForNotification();
  std::thread heart([&runner] { runner.heartbeat(); });
  notes.asked.WaitForNotification();
  runner.Abort({.epoch = 2, .cause = absl::OkStatus()});
  EXPECT_FALSE(aborted.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
  notes.go_on.Notify();
  heart.join();
  ASSERT_TRUE(aborted.WaitForNotificationWithTimeout(absl::Seconds(60)));
  EXPECT_EQ(notes.freed_on, notes.connected_on);
}

TEST_F(StageJobRunnerAbortTest, WorkOfAnAbortedEpochIsDropped) {
  Abort(5, absl::OkStatus());
  EXPECT_EQ(Next().message.aborted().epoch(), 5);
  runner_->CheckInputs(4, Check());
  v1::ProbeOutput probe;
  probe.set_directory(dir_.path());
  probe.set_file("probe");
  runner_->ProbeOutput(4, probe);
  runner_->Assemble(4, AssignmentOf(1));
  runner_->Run(4, {.epoch = 4, .work = v1::ReleaseStep()});
  // The next that is heard is of the next job.
  EXPECT_FALSE(Fingerprint(5).empty());
  EXPECT_TRUE(reports_.empty());
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("probe")));
  EXPECT_EQ(Status().state(), v1::Stage::STATE_REGISTERED);
  EXPECT_EQ(Status().last_error().code(), 0);
}

}  // namespace
}  // namespace penstock::server::service
