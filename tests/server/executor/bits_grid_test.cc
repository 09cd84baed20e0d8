// Promise 1 on the `cpu` device, the whole grid: for each M, schedule x K x v x
// recompute give the bits of one thread without a pipeline, 20 steps with
// dropout. (bits_test.cc: `reference`; tests/e2e/bits_test.py: separate
// processes.)
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/bits_oracle.h"
#include "tests/server/executor/pipeline.h"
#include "tests/server/model/test_devices.h"

namespace penstock::server::executor {
namespace {

using ::penstock::testing::Bits;
using ::penstock::testing::BitsJob;
using ::penstock::testing::BitsOracle;
using ::penstock::testing::CreateTestDevice;
using ::penstock::testing::EveryCell;
using ::penstock::testing::ExpectBits;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::ScheduleOptions;
using ::penstock::testing::TinyModel;
using ::penstock::testing::Wire;

// Wide enough that column sums, rows and heads are several blocks, for two
// threads to share.
server::model::ModelConfig Model() {
  server::model::ModelConfig model = TinyModel();
  model.layers = 6;  // Enough for 4 ranks with 2 chunks.
  model.width = 72;
  model.heads = model.kv_heads = 3;
  model.head_dim = 24;
  model.ffn_width = 144;
  model.vocab = 131;
  return model;
}

// By M. Threads and wire take turns.
class BitsGridTest : public ::testing::TestWithParam<int> {};

TEST_P(BitsGridTest, EveryCellHasTheBitsOfOneThread) {
  const int micro_batches = GetParam();
  ASSERT_GT(Model().dropout, 0);
  ASSERT_OK_AND_ASSIGN(const auto device, CreateTestDevice("cpu"));
  const Bits expected =
      BitsOracle(*device, Model(), BitsJob::kGlobal / micro_batches);
  int cells = 0;
  for (const ScheduleOptions& cell : EveryCell(micro_batches)) {
    for (const bool recompute : {false, true}) {
      const std::string cpu = cells % 2 == 0 ? "cpu" : "cpu2";
      const Wire wire = cells / 2 % 2 == 0 ? Wire::kInProcess : Wire::kTcp;
      SCOPED_TRACE(absl::StrCat(cell.name, " K ", cell.ranks, " v ",
                                cell.chunks, " recompute ", recompute, " ", cpu,
                                wire == Wire::kTcp ? " tcp" : ""));
      ExpectBits(
          {.program = LowerNamed(cell),
           .assignment = {.model = Model(), .full_recompute = recompute},
           .device = [&cpu](int) { return CreateTestDevice(cpu).value(); },
           .wire = wire},
          expected);
      ++cells;
    }
  }
  // 5 schedules of one chunk, 3 of one or two and auto, on 4 depths each; twice
  // for recompute. The V shapes and M that suits not every schedule come to it.
  EXPECT_GE(cells, 2 * 4 * 9);
  RecordProperty("cells", cells);
}

INSTANTIATE_TEST_SUITE_P(Grid, BitsGridTest, ::testing::Values(1, 2, 4, 8),
                         [](const auto& info) {
                           return absl::StrCat("M", info.param);
                         });

}  // namespace
}  // namespace penstock::server::executor
