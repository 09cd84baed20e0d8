// Promise 1 on the `cpu` device, the whole grid: for each M, K x schedule x
// recompute x threads x wire give the bits of one thread without a pipeline, 20
// steps with dropout. (bits_test.cc: `reference`; tests/e2e/bits_test.py:
// separate processes.)
#include <string>
#include <tuple>

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
using ::penstock::testing::ExpectBits;
using ::penstock::testing::LowerNamed;
using ::penstock::testing::TinyModel;
using ::penstock::testing::Wire;

// Wide enough that column sums, rows and heads are several blocks, for two
// threads to share.
server::model::ModelConfig Model() {
  server::model::ModelConfig model = TinyModel();
  model.width = 72;
  model.heads = model.kv_heads = 3;
  model.head_dim = 24;
  model.ffn_width = 144;
  model.vocab = 131;
  return model;
}

// M, schedule.
class BitsGridTest
    : public ::testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(BitsGridTest, EveryCellHasTheBitsOfOneThread) {
  const auto& [micro_batches, schedule] = GetParam();
  ASSERT_GT(Model().dropout, 0);
  ASSERT_OK_AND_ASSIGN(const auto device, CreateTestDevice("cpu"));
  const Bits expected =
      BitsOracle(*device, Model(), BitsJob::kGlobal / micro_batches);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const bool recompute : {false, true}) {
      for (const std::string cpu : {"cpu", "cpu2"}) {
        for (const Wire wire : {Wire::kInProcess, Wire::kTcp}) {
          SCOPED_TRACE(absl::StrCat("K ", ranks, " recompute ", recompute, " ",
                                    cpu, wire == Wire::kTcp ? " tcp" : ""));
          ExpectBits(
              {.program = LowerNamed({.name = schedule,
                                      .ranks = ranks,
                                      .micro_batches = micro_batches}),
               .assignment = {.model = Model(), .full_recompute = recompute},
               .device = [&cpu](int) { return CreateTestDevice(cpu).value(); },
               .wire = wire},
              expected);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, BitsGridTest,
                         ::testing::Combine(::testing::Values(1, 2, 4, 8),
                                            ::testing::Values("naive", "gpipe",
                                                              "1f1b")),
                         [](const auto& info) {
                           return absl::StrCat("M", std::get<0>(info.param),
                                               "_", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace penstock::server::executor
