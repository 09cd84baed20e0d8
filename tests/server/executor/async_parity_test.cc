// The outside truth on really asynchronous streams: a gpt2 and a llama, whole
// loss curves and final weights, and the bits of inline streams, recompute too.
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "tests/fakes/async_device/async_device.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/parity_run.h"
#include "tests/server/model/parity_case.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::ParityCase;
using ::penstock::testing::ParityOutcome;
using ::penstock::testing::ParityRun;
using ::penstock::testing::ReadParityCase;
using ::penstock::testing::TrainParity;
using tests::fakes::AsyncDeviceOptions;

// Case, when streams work.
class AsyncParityTest
    : public ::testing::TestWithParam<
          std::tuple<std::string, AsyncDeviceOptions::Schedule>> {};

TEST_P(AsyncParityTest, TrainsAsTorchDoesWithTheBitsOfInlineStreams) {
  const auto& [name, schedule] = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")), name));
  ParityRun run{.ranks = 3, .micro_batch = 2};
  ASSERT_OK_AND_ASSIGN(const ParityOutcome inline_streams,
                       TrainParity(parity, run));
  const auto when = schedule;
  run.device = [when](int rank) {
    return tests::fakes::CreateAsyncDevice(
        {.schedule = when,
         .seed = static_cast<uint32_t>(rank) + 1,
         .longest_delay = absl::Microseconds(20)},
        server::device::reference::CreateReferenceDevice().value());
  };
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute ? "recompute" : "no recompute");
    run.full_recompute = recompute;
    ASSERT_OK_AND_ASSIGN(const ParityOutcome outcome, TrainParity(parity, run));
    EXPECT_OK(outcome.deviations.Check());
    EXPECT_EQ(outcome.weights_sha256, inline_streams.weights_sha256);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, AsyncParityTest,
    ::testing::Combine(::testing::Values("gpt2_masked", "llama_tied"),
                       ::testing::Values(AsyncDeviceOptions::Schedule::kRandom,
                                         AsyncDeviceOptions::Schedule::kLazy)),
    [](const auto& info) {
      return absl::StrCat(
          std::get<0>(info.param),
          std::get<1>(info.param) == AsyncDeviceOptions::Schedule::kRandom
              ? "_random"
              : "_lazy");
    });

}  // namespace
}  // namespace penstock::server::executor
