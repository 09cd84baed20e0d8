// The outside truth through executors, transport and schedules: losses,
// gradients, norms, whole loss curve and final weights of the parity cases
// against torch. Which cells: parity_sample.cc, parity_grid.cc.
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/parity_cell.h"
#include "tests/server/executor/parity_run.h"
#include "tests/server/model/deviations.h"
#include "tests/server/model/parity_case.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::CreateTestDevice;
using ::penstock::testing::Deviations;
using ::penstock::testing::ParityCase;
using ::penstock::testing::ParityCell;
using ::penstock::testing::ParityCells;
using ::penstock::testing::ParityOutcome;
using ::penstock::testing::ReadParityCase;
using ::penstock::testing::TrainParity;
using ::penstock::testing::Wire;

std::string NameOf(const ParityCell& cell) {
  return absl::StrCat(cell.name, "_", cell.device, "_K_",
                      cell.ranks == 0 ? "all" : absl::StrCat(cell.ranks), "_",
                      cell.schedule, "_size_", cell.micro_batch,
                      cell.full_recompute ? "_recompute" : "",
                      cell.wire == Wire::kTcp ? "_tcp" : "");
}

class ExecutorParityTest : public ::testing::TestWithParam<ParityCell> {
 protected:
  static void TearDownTestSuite() {
    std::cout << "worst of all:\n" << all_.ToString();
  }
  inline static Deviations all_;
};

TEST_P(ExecutorParityTest, TrainsAsTorchDoes) {
  const ParityCell& cell = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const ParityCase parity,
      ReadParityCase(std::string(std::getenv("PENSTOCK_TEST_DATA")),
                     cell.name));
  ASSERT_OK_AND_ASSIGN(
      const ParityOutcome outcome,
      TrainParity(
          parity,
          {.ranks = cell.ranks == 0 ? static_cast<int>(parity.model.layers) + 2
                                    : cell.ranks,
           .schedule = cell.schedule,
           .micro_batch = cell.micro_batch,
           .full_recompute = cell.full_recompute,
           .wire = cell.wire,
           .device = [&](int) {
             return CreateTestDevice(cell.device).value();
           }}));
  EXPECT_OK(outcome.deviations.Check());
  all_.Merge(outcome.deviations, NameOf(cell));
}

INSTANTIATE_TEST_SUITE_P(Cells, ExecutorParityTest,
                         ::testing::ValuesIn(ParityCells()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace penstock::server::executor
