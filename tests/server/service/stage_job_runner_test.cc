// The real runner with real files, weights and executors, on the reference
// device: what it reports, and that what was aborted is over.
#include "server/service/stage_job_runner.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/time/proto_time.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/transport/inprocess/hub.h"
#include "tests/fakes/forwarding_transport.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/assignments.h"
#include "tests/server/service/recorded.h"

namespace penstock::server::service {
namespace {

using ::penstock::testing::AssignmentOptions;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::Recorded;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSequenceLength = 8;

struct Reported {
  int64_t epoch = 0;
  v1::StageMessage message;
};

// Says when it is asked to connect: then the job is the runner's.
class ConnectingTransport final : public tests::fakes::ForwardingTransport {
 public:
  ConnectingTransport(std::unique_ptr<transport::Transport> wrapped,
                      common::sync::Notification& connecting)
      : ForwardingTransport(std::move(wrapped)), connecting_(connecting) {}

  absl::Status Connect(absl::Time deadline) override {
    if (!connecting_.HasBeenNotified()) connecting_.Notify();
    return ForwardingTransport::Connect(deadline);
  }

 private:
  common::sync::Notification& connecting_;
};

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

class StageJobRunnerTest : public ::testing::Test {
 protected:
  StageJobRunnerTest() : hub_(transport::inprocess::HubOptions{}) {
    resources_.stage_name = "stage-0";
    resources_.make_device =
        [this](const std::string&,
               int) -> absl::StatusOr<std::unique_ptr<device::Device>> {
      if (!device_error_.ok()) return device_error_;
      return device::reference::CreateReferenceDevice();
    };
    resources_.clock = &clock_;
    resources_.make_transport =
        [this](const transport::TransportOptions& options)
        -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
      ASSIGN_OR_RETURN(auto joined, hub_.Join("stage-0", options));
      return std::make_unique<ConnectingTransport>(std::move(joined),
                                                   connecting_);
    };
    resources_.resident_bytes = [] { return 1; };
    runner_ = std::make_unique<StageJobRunner>(
        resources_, [this](int64_t epoch, v1::StageMessage message) {
          reports_.Put({epoch, std::move(message)});
        });
    Write("abcdefghijklmnopqrstuvwxyz0123456789");
  }

  void Write(const std::string& text) { path_ = dir_.Write("t.txt", text); }
  static model::ModelConfig Model() {
    model::ModelConfig model = penstock::testing::TinyModel();
    model.vocab = 256;
    return model;
  }
  v1::DataConfig Data() const {
    v1::DataConfig data;
    data.set_train_path(path_);
    data.set_format(v1::DataConfig::FORMAT_TEXT);
    data.set_sequence_length(kSequenceLength);
    return data;
  }
  v1::CheckInputs Check() const {
    v1::CheckInputs check;
    *check.mutable_model() = penstock::testing::EncodeModel(Model());
    *check.mutable_data() = Data();
    return check;
  }
  // Of so many ranks; two micro-batches.
  v1::Assignment AssignmentOf(int ranks, int rank = 0) const {
    v1::Assignment assignment = penstock::testing::Assignments(
        LowerNamed({.ranks = ranks, .micro_batches = 2}),
        AssignmentOptions{.model = Model()})[rank];
    *assignment.mutable_data() = Data();
    return assignment;
  }
  Reported Next() {
    auto next = reports_.Take();
    CHECK(next.has_value());
    return *std::move(next);
  }
  void Abort(int64_t epoch, const absl::Status& cause) {
    runner_->Abort({.epoch = epoch, .cause = cause});
  }
  v1::StageStatus Status() {
    v1::StageStatus status;
    runner_->Describe(status);
    return status;
  }
  std::string Fingerprint(int64_t epoch) {
    runner_->CheckInputs(epoch, Check());
    const Reported checked = Next();
    CHECK(checked.message.has_inputs_checked());
    return checked.message.inputs_checked().train().fingerprint();
  }

  const tests::fakes::TempDir dir_;
  std::string path_;
  common::time::RealClock clock_;
  transport::inprocess::Hub hub_;
  common::sync::Notification connecting_;
  absl::Status device_error_;
  StageResources resources_;
  Recorded<Reported> reports_;
  // Last: its threads use the others.
  std::unique_ptr<StageJobRunner> runner_;
};

TEST_F(StageJobRunnerTest, RunsAJobFromItsInputsToItsRelease) {
  const int64_t before = runner_->heartbeat().progress();
  const std::string fingerprint = Fingerprint(1);
  EXPECT_EQ(fingerprint.size(), 64);
  const int64_t checked = runner_->heartbeat().progress();
  EXPECT_GT(checked, before);  // The data were read.

  runner_->Assemble(1, AssignmentOf(1));
  const Reported ready = Next();
  EXPECT_EQ(ready.epoch, 1);
  ASSERT_TRUE(ready.message.has_ready()) << ready.message.DebugString();
  EXPECT_GT(ready.message.ready().parameters_size(), 10);
  EXPECT_EQ(runner_->heartbeat().unconnected_size(), 0);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_READY);
  // A tensor each.
  EXPECT_GE(runner_->heartbeat().progress(),
            checked + ready.message.ready().parameters_size());

  runner_->Run(1, {.epoch = 1,
                   .work = penstock::testing::TrainCommands(
                       LowerNamed({.ranks = 1, .micro_batches = 2}), 0, 1)});
  const Reported report = Next();
  ASSERT_TRUE(report.message.has_step_report());
  EXPECT_EQ(report.message.step_report().losses_size(), 2);
  v1::ReleaseStep release;
  release.set_step(1);
  release.set_decision(v1::ReleaseStep::DECISION_SKIP);
  runner_->Run(1, {.epoch = 1, .work = release});
  EXPECT_EQ(Next().message.apply_ack().step(), 1);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_RUNNING);
  EXPECT_EQ(Status().job_id(), "job-00000");

  Abort(2, absl::OkStatus());
  const Reported aborted = Next();
  EXPECT_EQ(aborted.message.aborted().epoch(), 2);
  EXPECT_EQ(Status().state(), v1::Stage::STATE_REGISTERED);
  EXPECT_EQ(Status().rank(), -1);
  // A release is no error.
  EXPECT_EQ(Status().last_error().code(), 0) << Status().DebugString();
}

TEST_F(StageJobRunnerTest, AHeartbeatSaysWhichCommandWaitsForWhatAndHowLong) {
  StageResources resources = resources_;
  resources.stage_name = "stage-1";
  resources.make_transport = [this](const auto& options) {
    return hub_.Join("stage-1", options);
  };
  Recorded<Reported> heard;
  StageJobRunner neighbour(resources,
                           [&heard](int64_t epoch, v1::StageMessage message) {
                             heard.Put({epoch, std::move(message)});
                           });
  runner_->Assemble(1, AssignmentOf(2, 0));
  neighbour.Assemble(1, AssignmentOf(2, 1));
  ASSERT_TRUE(Next().message.has_ready());
  ASSERT_TRUE(heard.Take()->message.has_ready());
  v1::Heartbeat beat = runner_->heartbeat();
  EXPECT_EQ(beat.head_command(), "");
  EXPECT_FALSE(beat.has_head_since());
  EXPECT_FALSE(beat.has_awaited());

  // Stage 0 gets no command: it sends nothing.
  const auto program = LowerNamed({.ranks = 2, .micro_batches = 2});
  neighbour.Run(
      1, {.epoch = 1, .work = penstock::testing::TrainCommands(program, 1, 1)});
  const auto wait_until = [&](const auto& condition) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    do {
      beat = neighbour.heartbeat();
    } while (!condition() && absl::Now() < end);
  };
  wait_until([&] { return beat.has_awaited(); });
  EXPECT_EQ(beat.head_command(), "F stage 1 micro-batch 0 of step 1");
  EXPECT_EQ(beat.awaited().kind(), v1::EDGE_KIND_ACTIVATION);
  EXPECT_EQ(beat.awaited().source_stage(), 0);
  EXPECT_EQ(beat.awaited().target_stage(), 1);
  const v1::Heartbeat first = beat;
  ASSERT_TRUE(first.has_head_since());
  // It grows while the command stays.
  wait_until([&] {
    return common::time::FromProto(beat.head_since()) >
           common::time::FromProto(first.head_since());
  });
  EXPECT_GT(common::time::FromProto(beat.head_since()),
            common::time::FromProto(first.head_since()));
  EXPECT_EQ(beat.head_command(), first.head_command());
}

TEST_F(StageJobRunnerTest, AnAbortEndsAnAssemblyThatWaitsForItsPeers) {
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
TEST_F(StageJobRunnerTest, AnEdgeThatBreaksDuringTheAssemblyIsToldAsAnEdge) {
  StageResources resources = resources_;
  resources.stage_name = "stage-1";
  common::sync::Notification connecting;
  resources.make_transport = [&](const transport::TransportOptions& options)
      -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
    ASSIGN_OR_RETURN(auto joined, hub_.Join("stage-1", options));
    return std::make_unique<ConnectingTransport>(std::move(joined), connecting);
  };
  Recorded<Reported> heard;
  StageJobRunner neighbour(resources,
                           [&heard](int64_t epoch, v1::StageMessage message) {
                             heard.Put({epoch, std::move(message)});
                           });
  // Nobody is stage-2: both wait.
  runner_->Assemble(1, AssignmentOf(3, 0));
  neighbour.Assemble(1, AssignmentOf(3, 1));
  connecting_.WaitForNotification();
  connecting.WaitForNotification();
  Abort(2, absl::UnavailableError("stage-0 died"));
  // What the assembly itself would say comes before the answer to the probe.
  v1::ProbeOutput probe;
  probe.set_directory(dir_.path());
  probe.set_file("probe");
  neighbour.ProbeOutput(1, probe);
  bool probed = false, told = false;
  while (!probed || !told) {
    const std::optional<Reported> next = heard.Take();
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
  EXPECT_TRUE(heard.empty());
}

TEST_F(StageJobRunnerTest, AnAbortEndsTheReadingOfFiles) {
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
TEST_F(StageJobRunnerTest, TheWorkerFreesAJobOnceNobodyReadsItAnyMore) {
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

TEST_F(StageJobRunnerTest, WorkOfAnAbortedEpochIsDropped) {
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

TEST_F(StageJobRunnerTest, CommandsBeforeTheAssignmentAreAFailure) {
  runner_->Run(1, {.epoch = 1, .work = v1::ReleaseStep()});
  const Reported failed = Next();
  EXPECT_EQ(failed.message.failure().epoch(), 1);
  EXPECT_THAT(failed.message.failure().cause().message(),
              HasSubstr("before the assignment"));
}

TEST_F(StageJobRunnerTest, AnAssemblyThatFailsIsReportedAndRemembered) {
  device_error_ = absl::ResourceExhaustedError("no memory for 3 GiB");
  runner_->Assemble(1, AssignmentOf(1));
  const Reported failed = Next();
  ASSERT_TRUE(failed.message.has_failure());
  const v1::Cause& cause = failed.message.failure().cause();
  EXPECT_EQ(cause.stage_name(), "stage-0");
  EXPECT_EQ(cause.reason(), "OUT_OF_MEMORY");
  EXPECT_THAT(cause.message(), AllOf(HasSubstr("stage-0: no memory for 3 GiB"),
                                     HasSubstr("use more stages")));
  EXPECT_EQ(Status().last_error().message(), cause.message());
  // A user's wish, and the end of the job, do not hide it.
  Abort(2, absl::CancelledError("cancelled"));
  Next();
  EXPECT_EQ(Status().last_error().message(), cause.message());
}

TEST_F(StageJobRunnerTest, ThreadsThatThereAreNotAreNoWantOfMemoryOfTheModel) {
  device_error_ = common::status::WithReason(
      absl::ResourceExhaustedError("of 9 compute threads there are 4"),
      common::status::kReasonOutOfMemory);
  runner_->Assemble(1, AssignmentOf(1));
  const Reported failed = Next();
  const v1::Cause& cause = failed.message.failure().cause();
  EXPECT_EQ(cause.reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(cause.message(), "stage-0: of 9 compute threads there are 4");
}

// The late command would be refused with less than the failure before it says,
// and be taken for a cause of its own.
TEST_F(StageJobRunnerTest, CommandsThatComeAfterAFailureAreNoSecondOne) {
  runner_->Assemble(1, AssignmentOf(1));
  ASSERT_TRUE(Next().message.has_ready());
  Write("");
  const auto commands = [](int64_t step) {
    return RunAction{
        .epoch = 1,
        .work = penstock::testing::TrainCommands(
            LowerNamed({.ranks = 1, .micro_batches = 2}), 0, step)};
  };
  runner_->Run(1, commands(1));
  const Reported failed = Next();
  EXPECT_EQ(failed.message.failure().cause().reason(), "INPUT_NOT_VISIBLE");
  EXPECT_THAT(failed.message.failure().cause().message(),
              HasSubstr("data files must stay"));
  runner_->Run(1, commands(2));
  runner_->Run(1, {.epoch = 1, .work = v1::ReleaseStep()});
  Abort(2, absl::UnavailableError("the job failed"));
  const Reported next = Next();
  EXPECT_TRUE(next.message.has_aborted()) << next.message.DebugString();
}

TEST_F(StageJobRunnerTest, AFailedCheckSaysWhichKeyIsToBlame) {
  v1::CheckInputs check = Check();
  check.mutable_data()->set_train_path(dir_.Path("missing"));
  runner_->CheckInputs(1, check);
  v1::InputsChecked checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.failed_key(), "data.train");
  EXPECT_EQ(checked.failure().reason(), "INPUT_NOT_VISIBLE");
  EXPECT_EQ(checked.failure().stage_name(), "stage-0");
  check = Check();
  check.set_model_path(dir_.Path("no-model"));
  runner_->CheckInputs(1, check);
  checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.failed_key(), "model.from");
  EXPECT_THAT(checked.failure().message(), HasSubstr("no-model"));
}

TEST_F(StageJobRunnerTest, AProbeIsWrittenIntoAFolderThatIsThere) {
  v1::ProbeOutput probe;
  probe.set_directory(dir_.path());
  probe.set_file("probe-0");
  probe.set_contents("nonce");
  for (int again = 0; again < 2; ++again) {
    runner_->ProbeOutput(1, probe);
    const Reported probed = Next();
    ASSERT_TRUE(probed.message.has_output_probed());
    EXPECT_FALSE(probed.message.output_probed().has_failure());
    std::ifstream file(dir_.Path("probe-0"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "nonce");
  }
  probe.set_directory(dir_.Path("elsewhere"));
  runner_->ProbeOutput(1, probe);
  const v1::Cause failure = Next().message.output_probed().failure();
  EXPECT_EQ(failure.reason(), "INPUT_NOT_VISIBLE");
  EXPECT_EQ(failure.stage_name(), "stage-0");
  EXPECT_THAT(failure.message(), HasSubstr("elsewhere/probe-0"));
}

// Lines of tokens decide length and vocabulary: the assignment says more of
// them than the check could.
TEST_F(StageJobRunnerTest, DataWhoseLengthWasOpenAtTheCheckAreReadOnce) {
  std::string lines;
  for (int i = 0; i < 4; ++i) {
    lines += "{\"input_ids\":[1,2,3,4,5,6,7,8,100]}\n";
  }
  Write(lines);
  v1::CheckInputs check = Check();
  check.mutable_data()->set_format(v1::DataConfig::FORMAT_JSONL);
  check.mutable_data()->clear_sequence_length();
  check.mutable_model()->set_vocab(0);
  v1::Assignment assignment = AssignmentOf(1);
  assignment.mutable_data()->set_format(v1::DataConfig::FORMAT_JSONL);

  runner_->CheckInputs(1, check);
  const v1::InputsChecked checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.train().sequence_length(), kSequenceLength);
  EXPECT_EQ(checked.train().largest_id(), 100);
  const int64_t read = runner_->heartbeat().progress();
  runner_->Assemble(1, assignment);
  const Reported ready = Next();
  ASSERT_TRUE(ready.message.has_ready()) << ready.message.DebugString();
  // Only the tensors were made.
  EXPECT_EQ(runner_->heartbeat().progress(),
            read + ready.message.ready().parameters_size());
  Abort(2, absl::OkStatus());
  Next();

  const auto refusal = [&](int64_t epoch, const v1::Assignment& wrong) {
    runner_->CheckInputs(epoch, check);
    Next();
    runner_->Assemble(epoch, wrong);
    const Reported failed = Next();
    EXPECT_TRUE(failed.message.has_failure()) << failed.message.DebugString();
    Abort(epoch + 1, absl::OkStatus());
    Next();
    return failed.message.failure().cause().message();
  };
  v1::Assignment wrong = assignment;
  wrong.mutable_data()->set_sequence_length(kSequenceLength - 1);
  EXPECT_THAT(refusal(3, wrong), HasSubstr("the assignment says 7"));
  wrong = assignment;
  wrong.mutable_model()->set_vocab(100);
  EXPECT_THAT(refusal(5, wrong),
              HasSubstr("the assignment says model.vocab 100"));
}

TEST_F(StageJobRunnerTest, DataThatChangedBetweenTwoJobsAreReadAnew) {
  const std::string first = Fingerprint(1);
  const int64_t read = runner_->heartbeat().progress();
  // Within a job they are read once.
  EXPECT_EQ(Fingerprint(1), first);
  EXPECT_EQ(runner_->heartbeat().progress(), read);
  Abort(2, absl::OkStatus());
  Next();
  Write("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");  // Of the same size.
  EXPECT_NE(Fingerprint(2), first);
}

}  // namespace
}  // namespace penstock::server::service
