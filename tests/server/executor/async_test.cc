// The same executor on really asynchronous streams gives the same bits; and
// every wait that it makes is needed: leave it out, and it does not.
#include <sys/wait.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "tests/fakes/async_device/async_device.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/leaky_transport.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::Leak;
using ::penstock::testing::LeakSite;
using ::penstock::testing::LeakyTransport;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::Pipeline;
using ::penstock::testing::TinyModel;
using server::transport::EdgeKind;
using server::transport::EdgeRole;
using tests::fakes::AsyncDeviceOptions;

constexpr int kRanks = 3;
constexpr int kMicroBatches = 4;

// What a run of train steps, an evaluation and more steps leaves.
struct Outcome {
  std::vector<double> losses;
  double evaluation = 0;
  std::string applied;  // Weights at the last ApplyAck.
  std::string ended;    // Weights that END reports.

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

absl::StatusOr<Outcome> RunJob(Pipeline::Options options,
                               const std::string& schedule) {
  options.program = LowerNamed(
      {.name = schedule, .ranks = kRanks, .micro_batches = kMicroBatches});
  options.assignment = {.model = TinyModel(), .micro_batch = 2};
  ASSIGN_OR_RETURN(const auto pipeline, Pipeline::Create(std::move(options)));
  Outcome outcome;
  const auto train = [&](int count) -> absl::Status {
    ASSIGN_OR_RETURN(const auto steps, pipeline->Train(count));
    for (const Pipeline::Step& step : steps) {
      outcome.losses.push_back(step.loss);
      outcome.losses.push_back(step.grad_norm);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(train(2));
  ASSIGN_OR_RETURN(const v1::EvalReport report, pipeline->Evaluate(11));
  outcome.evaluation = report.loss_sum();
  RETURN_IF_ERROR(train(1));
  ASSIGN_OR_RETURN(outcome.applied, pipeline->WeightsSha256());
  ASSIGN_OR_RETURN(outcome.ended, pipeline->End());
  return outcome;
}

// On inline streams; the same for every schedule.
Outcome Expected(const std::string& schedule) {
  const auto outcome = RunJob({}, schedule);
  CHECK_OK(outcome.status());
  return *outcome;
}

std::unique_ptr<server::device::Device> Async(
    const AsyncDeviceOptions& options) {
  auto reference = server::device::reference::CreateReferenceDevice();
  CHECK_OK(reference.status());
  return tests::fakes::CreateAsyncDevice(options, *std::move(reference));
}

using AsyncParam = std::tuple<std::string, AsyncDeviceOptions::Schedule>;
class AsyncTest : public ::testing::TestWithParam<AsyncParam> {};

TEST_P(AsyncTest, BitsAreThoseOfInlineStreams) {
  const auto& [schedule, when] = GetParam();
  const Outcome expected = Expected(schedule);
  EXPECT_EQ(expected.applied, expected.ended);
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto when_copy = when;
    ASSERT_OK_AND_ASSIGN(
        const Outcome outcome,
        RunJob({.device =
                    [&](int rank) {
                      return Async(
                          {.schedule = when_copy, .seed = seed * 10 + rank});
                    },
                .hub = {.max_delay = absl::Microseconds(seed % 2 * 200),
                        .seed = seed}},
               schedule));
    EXPECT_EQ(outcome, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, AsyncTest,
    ::testing::Combine(::testing::Values("naive", "gpipe", "1f1b"),
                       ::testing::Values(AsyncDeviceOptions::Schedule::kRandom,
                                         AsyncDeviceOptions::Schedule::kLazy)),
    [](const auto& info) {
      return std::get<0>(info.param) +
             (std::get<1>(info.param) == AsyncDeviceOptions::Schedule::kRandom
                  ? "_random"
                  : "_lazy");
    });

// One wait that is left out.
struct Mutation {
  std::string name;
  LeakSite site;
  // Of device events, by what they are for.
  enum class HostWait { kNone, kStagingCopied, kStepEnd, kApplied };
  HostWait host_wait = HostWait::kNone;
};

// The engine creates an event for each staging buffer, and last the one that it
// awaits at the end of a step, of each group of M evaluated micro-batches, and
// of an apply: in this order here.
bool Drops(Mutation::HostWait wait, int staging_events, int event, int await) {
  switch (wait) {
    case Mutation::HostWait::kNone:
      return false;
    case Mutation::HostWait::kStagingCopied:
      return event < staging_events;
    case Mutation::HostWait::kStepEnd:
      return event == staging_events && (await == 0 || await == 2);
    case Mutation::HostWait::kApplied:
      return event == staging_events && await != 0 && await != 2;
  }
  return false;
}

// Runs with the mutation, each time with another rank as the slow one; 0 if
// nobody noticed under any seed.
int ExitCode(const Mutation& mutation, const Outcome& expected) {
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    const std::string schedule = seed % 2 == 0 ? "1f1b" : "gpipe";
    std::vector<server::device::Device*> devices;
    const auto program = LowerNamed(
        {.name = schedule, .ranks = kRanks, .micro_batches = kMicroBatches});
    const auto outcome = RunJob(
        {.device =
             [&](int rank) {
               const int staging = program.stages[rank].slots;
               auto device = Async(
                   {.seed = seed * 10 + rank,
                    .longest_delay = absl::Microseconds(
                        rank == static_cast<int>(seed / 2 % kRanks) ? 2000
                                                                    : 100),
                    .drops_await = [&mutation, staging](int event, int await) {
                      return Drops(mutation.host_wait, staging, event, await);
                    }});
               devices.push_back(device.get());
               return device;
             },
         .transport =
             [&](int rank, auto transport) {
               auto idle = devices[rank]->CreateStream();
               CHECK_OK(idle.status());
               return std::make_unique<LeakyTransport>(
                   mutation.site, std::move(transport), *std::move(idle));
             },
         .hub = {.max_delay = absl::Milliseconds(seed % 3 * 2), .seed = seed}},
        schedule);
    if (!outcome.ok() || *outcome != expected) return 1;
  }
  return 0;
}

TEST(UnmutatedTest, IsRight) { EXPECT_EQ(ExitCode({}, Expected("1f1b")), 0); }

// In a process of its own, because a missing wait may also crash.
class MutationDeathTest : public ::testing::TestWithParam<Mutation> {};

TEST_P(MutationDeathTest, IsNoticed) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Outcome expected = Expected("1f1b");
  EXPECT_EXIT(
      std::_Exit(ExitCode(GetParam(), expected)),
      [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; },
      "");
}

Mutation Leaves(std::string name, Leak leak, EdgeKind kind, EdgeRole role) {
  return {.name = std::move(name),
          .site = {.leak = leak, .kind = kind, .role = role}};
}

INSTANTIATE_TEST_SUITE_P(
    Waits, MutationDeathTest,
    ::testing::Values(Leaves("ForwardWithoutItsActivation", Leak::kStreamWait,
                             EdgeKind::kActivation, EdgeRole::kTarget),
                      Leaves("BackwardWithoutItsGradient", Leak::kStreamWait,
                             EdgeKind::kGradient, EdgeRole::kTarget),
                      Leaves("TiedSumWithoutTheHeadsGradient",
                             Leak::kStreamWait, EdgeKind::kTiedGradient,
                             EdgeRole::kTarget),
                      Leaves("StepEndWithoutTheTiedSum", Leak::kStreamWait,
                             EdgeKind::kTiedSum, EdgeRole::kTarget),
                      Leaves("ActivationSendBufferReused", Leak::kStreamWait,
                             EdgeKind::kActivation, EdgeRole::kSource),
                      Leaves("GradientSendBufferReused", Leak::kStreamWait,
                             EdgeKind::kGradient, EdgeRole::kSource),
                      Leaves("ActivationPostedBeyondCapacity", Leak::kHostWait,
                             EdgeKind::kActivation, EdgeRole::kTarget),
                      Leaves("GradientPostedBeyondCapacity", Leak::kHostWait,
                             EdgeKind::kGradient, EdgeRole::kTarget),
                      Leaves("ActivationSentEarly", Leak::kAfter,
                             EdgeKind::kActivation, EdgeRole::kSource),
                      Leaves("GradientSentEarly", Leak::kAfter,
                             EdgeKind::kGradient, EdgeRole::kSource),
                      Leaves("TiedGradientSentEarly", Leak::kAfter,
                             EdgeKind::kTiedGradient, EdgeRole::kSource),
                      Leaves("TiedSumSentEarly", Leak::kAfter,
                             EdgeKind::kTiedSum, EdgeRole::kSource),
                      Leaves("ActivationLandsInATakenSlot", Leak::kAfter,
                             EdgeKind::kActivation, EdgeRole::kTarget),
                      Leaves("GradientLandsInATakenSlot", Leak::kAfter,
                             EdgeKind::kGradient, EdgeRole::kTarget),
                      Mutation{.name = "StagingReused",
                               .host_wait = Mutation::HostWait::kStagingCopied},
                      Mutation{.name = "ReportedEarly",
                               .host_wait = Mutation::HostWait::kStepEnd},
                      Mutation{.name = "AcknowledgedEarly",
                               .host_wait = Mutation::HostWait::kApplied}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::executor
