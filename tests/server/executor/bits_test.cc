// Promise 1: the same bits for every K, schedule and recompute setting, with
// dropout on. The oracle drives chunks one after the other on one thread.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "coordinator/schedule/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "tests/server/executor/bits_oracle.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::Bits;
using ::penstock::testing::BitsJob;
using ::penstock::testing::BitsOracle;
using ::penstock::testing::EveryCell;
using ::penstock::testing::ExpectBits;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::ScheduleOptions;
using ::penstock::testing::TinyModel;

constexpr int64_t kGlobal = BitsJob::kGlobal;

Bits Oracle(const server::model::ModelConfig& model, int64_t micro_batch) {
  return BitsOracle(*server::device::reference::CreateReferenceDevice().value(),
                    model, micro_batch);
}

// A pipeline of `program` gives what the oracle gives.
void ExpectOracle(const coordinator::schedule::LoweredProgram& program,
                  const server::model::ModelConfig& model, bool recompute,
                  const Bits& expected) {
  ExpectBits({.program = program,
              .assignment = {.model = model, .full_recompute = recompute}},
             expected);
}

// M, tied.
class BitsTest : public ::testing::TestWithParam<std::tuple<int, bool>> {};

// Every fourth cell, another for each M and tie, so that each schedule, K and v
// has its turn; recompute alternates. (The whole grid: bits_grid_test.cc.)
TEST_P(BitsTest, AreTheOraclesForEveryDepthAndSchedule) {
  const auto& [micro_batches, tied] = GetParam();
  server::model::ModelConfig model = TinyModel();
  model.layers = 6;
  model.tied = tied;
  const Bits expected = Oracle(model, kGlobal / micro_batches);
  const std::vector<ScheduleOptions> cells = EveryCell(micro_batches);
  bool recompute = tied;
  for (size_t i = micro_batches / 2 % 4 + tied; i < cells.size(); i += 4) {
    ScheduleOptions cell = cells[i];
    cell.tied = tied;
    recompute = !recompute;
    SCOPED_TRACE(absl::StrCat(cell.name, " K ", cell.ranks, " v ", cell.chunks,
                              " recompute ", recompute));
    ExpectOracle(LowerNamed(cell), model, recompute, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(MicroBatches, BitsTest,
                         ::testing::Combine(::testing::Values(1, 2, 4, 8),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(
                               "M", std::get<0>(info.param),
                               std::get<1>(info.param) ? "_tied" : "_untied");
                         });

// Orders that no generator makes: all of a stage at once, three chunks on one
// rank.
using coordinator::schedule::Op;

// All of a stage's micro-batches, then the next stage; forwards go up, input
// gradients down, then all weight gradients.
coordinator::schedule::LoweredProgram SplitProgram(
    const coordinator::schedule::Placement& placement, int micro_batches,
    bool tied) {
  coordinator::schedule::Schedule schedule = {
      .name = "split", .placement = placement, .micro_batches = micro_batches};
  for (int rank = 0; rank < placement.ranks; ++rank) {
    std::vector<coordinator::schedule::Command> order;
    const auto add = [&](Op op, int stage) {
      if (placement.rank_of(stage) != rank) return;
      for (int m = 0; m < micro_batches; ++m) order.push_back({op, stage, m});
    };
    const int stages = placement.stages();
    for (int s = 0; s < stages; ++s) add(Op::kForward, s);
    for (int s = stages; s-- > 0;) add(Op::kBackwardInput, s);
    for (int s = 0; s < stages; ++s) add(Op::kBackwardWeight, s);
    schedule.orders.push_back(std::move(order));
  }
  auto lowered =
      coordinator::schedule::Lower(schedule, {.tied_embedding = tied});
  CHECK_OK(lowered.status());
  return *std::move(lowered);
}

class ChunksTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(ChunksTest, SplitBackwardsAndLocalHandOversGiveTheOraclesBits) {
  const auto& [v_shaped, tied] = GetParam();
  server::model::ModelConfig model = TinyModel();
  model.tied = tied;
  const auto placement =
      v_shaped
          ? coordinator::schedule::VPlacement({.ranks = 2, .chunks = 2})
          : coordinator::schedule::LoopPlacement({.ranks = 2, .chunks = 2});
  for (int micro_batches : {1, 4}) {
    const Bits expected = Oracle(model, kGlobal / micro_batches);
    for (bool recompute : {false, true}) {
      SCOPED_TRACE(absl::StrCat("M ", micro_batches, " recompute ", recompute));
      ExpectOracle(SplitProgram(placement, micro_batches, tied), model,
                   recompute, expected);
      ExpectOracle(SplitProgram(coordinator::schedule::LoopPlacement(
                                    {.ranks = 1, .chunks = 3}),
                                micro_batches, tied),
                   model, recompute, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, ChunksTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return absl::StrCat(
                               std::get<0>(info.param) ? "V" : "loop",
                               std::get<1>(info.param) ? "_tied" : "_untied");
                         });

}  // namespace
}  // namespace penstock::server::executor
