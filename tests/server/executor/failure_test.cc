// How an epoch ends before its time: broken edges, deadlines, bad data, Abort
// at any moment; and that the next epoch goes on with the right bits.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/file_error.h"
#include "common/sync/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/executor/deadline_watch.h"
#include "tests/fakes/async_device/async_device.h"
#include "tests/fakes/forwarding_transport.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::MadeUpData;
using ::penstock::testing::Pipeline;
using ::penstock::testing::StatusIs;
using ::penstock::testing::TinyModel;
using server::transport::EdgeKind;
using server::transport::inprocess::FaultKind;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

Pipeline::Options Options(int ranks, int micro_batches) {
  return {
      .program = LowerNamed({.ranks = ranks, .micro_batches = micro_batches}),
      .assignment = {.model = TinyModel()}};
}

// The failures, by rank, of all ranks that report one.
std::vector<v1::StageFailure> Failures(Pipeline& pipeline, int count) {
  std::vector<v1::StageFailure> failures(pipeline.ranks());
  while (count > 0) {
    const auto event = pipeline.mailbox().Take();
    if (event == nullptr) break;
    if (const auto* failure = std::get_if<v1::StageFailure>(&event->body)) {
      failures[event->rank] = *failure;
      --count;
    }
  }
  return failures;
}

TEST(FailureTest, BrokenEdgeIsReportedByBothEnds) {
  Pipeline::Options options = Options(2, 4);
  options.hub.faults = {{.edge = {0, 1, EdgeKind::kActivation},
                         .message = 2,
                         .kind = FaultKind::kBreak}};
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  const auto failures = Failures(*pipeline, 2);
  for (int rank = 0; rank < 2; ++rank) {
    SCOPED_TRACE(rank);
    const v1::StageFailure& failure = failures[rank];
    EXPECT_EQ(failure.epoch(), 1);
    EXPECT_EQ(failure.step(), 1);
    EXPECT_EQ(failure.cause().reason(), "EDGE_BROKEN");
    EXPECT_EQ(failure.cause().stage_name(), absl::StrCat("stage-", rank));
    EXPECT_EQ(failure.cause().message(),
              absl::StrCat("activation 0->1: peer stage-", 1 - rank,
                           ": the connection broke (injected fault)"));
    EXPECT_EQ(failure.edge().source_stage(), 0);
    EXPECT_EQ(failure.edge().target_stage(), 1);
    EXPECT_EQ(failure.edge().kind(), v1::EDGE_KIND_ACTIVATION);
  }
  // Once each, and nothing else is taken.
  EXPECT_TRUE(pipeline->mailbox().TakeAll().empty());
  EXPECT_THAT(pipeline->Enqueue(0, pipeline->Commands(0, 2)),
              StatusIs(absl::StatusCode::kUnavailable));
}

// Words its failures in its own way.
class LaconicTransport final : public tests::fakes::ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  server::transport::Failure failure() const override {
    return Laconic(wrapped().failure());
  }
  void OnFailure(std::function<void(const server::transport::Failure&)>
                     callback) override {
    wrapped().OnFailure([callback = std::move(callback)](
                            const server::transport::Failure& failure) {
      callback(Laconic(failure));
    });
  }

 private:
  static server::transport::Failure Laconic(
      server::transport::Failure failure) {
    if (!failure.status.ok()) {
      failure.status = absl::Status(failure.status.code(), "gone");
    }
    return failure;
  }
};

TEST(FailureTest, TheBrokenEdgeDoesNotDependOnTheWordsOfItsFailure) {
  Pipeline::Options options = Options(2, 4);
  options.hub.faults = {{.edge = {1, 0, EdgeKind::kGradient},
                         .message = 1,
                         .kind = FaultKind::kBreak}};
  options.transport = [](int, auto transport) {
    return std::make_unique<LaconicTransport>(std::move(transport));
  };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  for (const v1::StageFailure& failure : Failures(*pipeline, 2)) {
    EXPECT_EQ(failure.cause().message(), "gone");
    EXPECT_EQ(failure.edge().source_stage(), 1);
    EXPECT_EQ(failure.edge().target_stage(), 0);
    EXPECT_EQ(failure.edge().kind(), v1::EDGE_KIND_GRADIENT);
  }
}

TEST(FailureTest, EdgeThatBreaksAtTheBarrierIsReportedAtOnce) {
  ASSERT_OK_AND_ASSIGN(const auto pipeline, Pipeline::Create(Options(2, 2)));
  ASSERT_OK(pipeline->Train(1).status());
  pipeline->executor(0).Abort(absl::AbortedError("killed"));
  const auto failures = Failures(*pipeline, 1);
  EXPECT_EQ(failures[1].cause().reason(), "EDGE_BROKEN");
  EXPECT_EQ(failures[1].step(), 2);
  EXPECT_THAT(failures[1].cause().message(), HasSubstr("peer stage-0"));
}

TEST(FailureTest, DeadlineNamesCommandPeerAndTime) {
  Pipeline::Options options = Options(2, 4);
  options.assignment.command_deadline_ms = 1001;
  options.hub.faults = {{.edge = {0, 1, EdgeKind::kActivation},
                         .message = 2,
                         .kind = FaultKind::kStall}};
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  std::vector<v1::StageFailure> failures;
  {
    Executor& waiting = pipeline->executor(1);
    ASSERT_OK_AND_ASSIGN(
        const auto watch,
        DeadlineWatch::Start([&waiting] { return waiting.CheckDeadline(); },
                             absl::Seconds(1)));
    failures = Failures(*pipeline, 2);
  }
  const v1::StageFailure& failure = failures[1];
  EXPECT_EQ(failure.cause().code(),
            static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(failure.cause().reason(), "TRANSPORT_TIMEOUT");
  EXPECT_THAT(
      failure.cause().message(),
      AllOf(HasSubstr("F stage 1 micro-batch 2 of step 1 has been at the head "
                      "of the queue for "),
            HasSubstr("command_deadline is 1.001s: it waits for activation "
                      "0->1 from stage-0")));
  EXPECT_EQ(failure.edge().kind(), v1::EDGE_KIND_ACTIVATION);
  EXPECT_EQ(failure.step(), 1);
  // Its transport is aborted, which the neighbour sees as a broken edge.
  EXPECT_EQ(failures[0].cause().reason(), "EDGE_BROKEN");
  EXPECT_THAT(failures[0].cause().message(), HasSubstr("peer stage-1"));
}

TEST(FailureTest, SenderThatNobodyTakesFromNamesItsPeer) {
  Pipeline::Options options = Options(2, 4);
  options.assignment.command_deadline_ms = 1000;
  options.hub.faults = {{.edge = {1, 0, EdgeKind::kGradient},
                         .message = 1,
                         .kind = FaultKind::kStall}};
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  std::vector<v1::StageFailure> failures;
  {
    Executor& sender = pipeline->executor(1);
    ASSERT_OK_AND_ASSIGN(
        const auto watch,
        DeadlineWatch::Start([&sender] { return sender.CheckDeadline(); },
                             absl::Seconds(1)));
    failures = Failures(*pipeline, 2);
  }
  EXPECT_THAT(failures[1].cause().message(),
              AllOf(HasSubstr("B stage 1 micro-batch 2 of step 1 has been "),
                    HasSubstr("waits for stage-0 to take gradient 1->0")));
}

class BrokenData final : public server::executor::MicroBatchSource {
 public:
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override {
    if (first == 2) {
      return common::status::WithReason(
          absl::DataLossError("train.txt: has changed"), "INPUT_NOT_VISIBLE");
    }
    return data_.Read(split, first, ids, labels);
  }

 private:
  MadeUpData data_{8, 19};
};

TEST(FailureTest, DataThatCannotBeReadIsReportedWithItsWords) {
  Pipeline::Options options = Options(2, 4);
  options.data = [](int) { return std::make_unique<BrokenData>(); };
  ASSERT_OK_AND_ASSIGN(const auto pipeline,
                       Pipeline::Create(std::move(options)));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(pipeline->Enqueue(rank, pipeline->Commands(rank, 1)));
  }
  for (const v1::StageFailure& failure : Failures(*pipeline, 2)) {
    EXPECT_EQ(failure.cause().code(),
              static_cast<int>(absl::StatusCode::kDataLoss));
    EXPECT_EQ(failure.cause().message(), "train.txt: has changed");
    EXPECT_EQ(failure.cause().reason(), "INPUT_NOT_VISIBLE");
    EXPECT_FALSE(failure.has_edge());
  }
}

class FailingWriter final : public server::executor::ModelWriter {
 public:
  explicit FailingWriter(absl::Status status) : status_(std::move(status)) {}
  absl::StatusOr<std::vector<std::string>> Write(const Request&) override {
    return status_;
  }

 private:
  const absl::Status status_;
};

// The failure of a rank that could not write its shard.
v1::StageFailure FailureOfWriter(const absl::Status& status) {
  FailingWriter writer(status);
  Pipeline::Options options = Options(1, 2);
  options.writer = &writer;
  auto pipeline = Pipeline::Create(std::move(options));
  CHECK_OK(pipeline.status());
  v1::End end;
  end.set_model_directory("/run/model");
  CHECK_OK((*pipeline)->Enqueue(0, end));
  return Failures(**pipeline, 1)[0];
}

TEST(FailureTest, AModelThatCannotBeWrittenIsReportedWithItsReason) {
  const v1::StageFailure full = FailureOfWriter(
      common::status::FileError(ENOSPC, "write /run/model/a.safetensors"));
  EXPECT_EQ(full.cause().reason(), "DISK_FULL");
  EXPECT_EQ(full.cause().stage_name(), "stage-0");
  EXPECT_EQ(full.cause().message(),
            "write /run/model/a.safetensors: No space left on device");
}

TEST(FailureTest, AnErrorWithoutAReasonIsReportedWithoutOne) {
  const v1::StageFailure failure =
      FailureOfWriter(absl::ResourceExhaustedError("no memory for 3 GiB"));
  EXPECT_EQ(failure.cause().reason(), "");
  EXPECT_EQ(failure.cause().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
}

// Does something at the transports' use of that number, on the engine thread
// of whichever rank makes it.
class Trigger {
 public:
  explicit Trigger(int uses) : left_(uses) {}
  // REQUIRES: before the first use.
  void Set(std::function<void()> action) { action_ = std::move(action); }
  void Use() {
    if (left_-- == 0) action_();
  }

 private:
  std::function<void()> action_;
  std::atomic<int> left_;
};

class TriggeringTransport final : public tests::fakes::ForwardingTransport {
 public:
  TriggeringTransport(std::shared_ptr<Trigger> trigger,
                      std::unique_ptr<server::transport::Transport> wrapped)
      : ForwardingTransport(std::move(wrapped)), trigger_(std::move(trigger)) {}

  void Send(const server::transport::Edge& edge,
            const server::transport::Tag& tag,
            const server::device::Tensor& payload,
            server::device::Stream& after,
            server::device::Event& done) override {
    trigger_->Use();
    wrapped().Send(edge, tag, payload, after, done);
  }
  void Receive(const server::transport::Edge& edge,
               const server::transport::Tag& tag,
               const server::device::Tensor& into,
               server::device::Stream& after,
               server::device::Event& done) override {
    trigger_->Use();
    wrapped().Receive(edge, tag, into, after, done);
  }

 private:
  const std::shared_ptr<Trigger> trigger_;
};

enum class Streams { kInline, kAsynchronous };
class AbortTest : public ::testing::TestWithParam<Streams> {};

std::unique_ptr<server::device::Device> MakeDevice(Streams streams,
                                                   uint32_t seed) {
  auto device = server::device::reference::CreateReferenceDevice();
  CHECK_OK(device.status());
  if (streams == Streams::kInline) return *std::move(device);
  return tests::fakes::CreateAsyncDevice({.seed = seed}, *std::move(device));
}

TEST_P(AbortTest, AtAnyMomentEndsAtOnceAndTheNextEpochGoesOn) {
  constexpr int kRanks = 3, kSteps = 6;
  std::string expected;
  {
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Pipeline::Create(Options(kRanks, 4)));
    ASSERT_OK(pipeline->Train(kSteps).status());
    ASSERT_OK_AND_ASSIGN(expected, pipeline->End());
  }
  std::mt19937 random(1);
  for (int round = 0; round < 25; ++round) {
    // A step has 4 messages on each of 4 edges and 2 tied ones, both ends.
    const auto trigger = std::make_shared<Trigger>(random() % (3 * 36));
    SCOPED_TRACE(absl::StrCat("round ", round));
    Pipeline::Options options = Options(kRanks, 4);
    options.device = [&](int rank) {
      return MakeDevice(GetParam(), round * 10 + rank);
    };
    options.transport = [&](int, auto transport) {
      return std::make_unique<TriggeringTransport>(trigger,
                                                   std::move(transport));
    };
    ASSERT_OK_AND_ASSIGN(const auto pipeline,
                         Pipeline::Create(std::move(options)));
    absl::Time aborted;
    common::sync::Notification done;
    trigger->Set([&] {
      aborted = absl::Now();
      pipeline->Abort();
      // Executors report nothing then: the test's own wait ends by this.
      v1::StageFailure stop;
      stop.mutable_cause()->set_code(
          static_cast<int>(absl::StatusCode::kAborted));
      pipeline->mailbox().Put({0, stop});
      done.Notify();
    });
    // A rank may see its neighbour's abort before its own.
    EXPECT_THAT(pipeline->Train(kSteps),
                StatusIs(AnyOf(absl::StatusCode::kAborted,
                               absl::StatusCode::kUnavailable)));
    done.WaitForNotification();
    // The recovery line: what every rank has. Ranks differ by one at most.
    int64_t line = kSteps;
    for (int rank = 0; rank < kRanks; ++rank) {
      line = std::min(line, pipeline->executor(rank).status().applied_step);
    }
    pipeline->StopExecutors();
    EXPECT_LT(absl::Now() - aborted, absl::Seconds(1));
    ASSERT_OK(pipeline->NextEpoch(line));
    ASSERT_OK(pipeline->Train(kSteps - line).status());
    EXPECT_THAT(pipeline->End(), IsOkAndHolds(expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, AbortTest,
                         ::testing::Values(Streams::kInline,
                                           Streams::kAsynchronous),
                         [](const auto& info) {
                           return info.param == Streams::kInline
                                      ? "Inline"
                                      : "Asynchronous";
                         });

}  // namespace
}  // namespace penstock::server::executor
