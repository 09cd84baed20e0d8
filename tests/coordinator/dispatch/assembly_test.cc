// Which stages a job gets, and what is said of those that it does not get.
#include "coordinator/dispatch/assembly.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/status/error_details.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/parameter_sizes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;
using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kAvx512[] = "cpu/avx512/1/0";
constexpr char kAvx2[] = "cpu/avx2/1/0";
constexpr char kBaseline[] = "cpu/sse2/1/0";

// Stages stage-0, stage-1, ... with these lists of ids, and a crew of them all.
class NumericsTest : public ::testing::Test {
 protected:
  absl::Status Agree(const std::vector<std::vector<std::string>>& lists) {
    for (const std::vector<std::string>& ids : lists) {
      v1::RegisterStageRequest request;
      request.set_stage_name("stage-" + std::to_string(crew_.members.size()));
      request.set_incarnation("0d2f6a4c-1b3e-4c5d-8e9f-0a1b2c3d4e5f");
      request.mutable_device()->set_kind("cpu");
      request.set_data_address("127.0.0.1:1");
      request.mutable_protocol()->set_lowest(1);
      request.mutable_protocol()->set_highest(1);
      for (const std::string& id : ids) request.add_numerics_ids(id);
      EXPECT_OK(registry_.Register(request, MonotonicTime()).status());
      crew_.members.push_back({.name = request.stage_name()});
    }
    return AgreeOnNumerics(registry_, crew_);
  }

  registry::Registry registry_{registry::Options{}};
  Crew crew_;
};

TEST_F(NumericsTest, TheBestThatAllHaveIsTaken) {
  ASSERT_OK(Agree({{kAvx512, kAvx2, kBaseline}, {kAvx512, kAvx2, kBaseline}}));
  EXPECT_EQ(crew_.numerics_id, kAvx512);
}

TEST_F(NumericsTest, OneOlderMachineDecidesForAll) {
  ASSERT_OK(Agree({{kAvx512, kAvx2, kBaseline},
                   {kAvx2, kBaseline},
                   {kAvx512, kAvx2, kBaseline}}));
  EXPECT_EQ(crew_.numerics_id, kAvx2);
}

TEST_F(NumericsTest, TheOlderMachineMayBeTheFirst) {
  ASSERT_OK(Agree({{kAvx2, kBaseline}, {kAvx512, kAvx2, kBaseline}}));
  EXPECT_EQ(crew_.numerics_id, kAvx2);
}

TEST_F(NumericsTest, TheLastOfOneListCanBeAllThatIsCommon) {
  ASSERT_OK(Agree({{kAvx512, kBaseline}, {kAvx2, kBaseline}}));
  EXPECT_EQ(crew_.numerics_id, kBaseline);
}

TEST_F(NumericsTest, WithoutACommonOneEachListIsNamed) {
  const absl::Status status =
      Agree({{kAvx512, kAvx2}, {kAvx512, kAvx2}, {"cpu/avx2/2/0"}});
  EXPECT_THAT(
      status,
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("stage-0 has cpu/avx512/1/0, cpu/avx2/1/0; "),
                     HasSubstr("stage-2 has cpu/avx2/2/0;"),
                     HasSubstr("install the same release"))));
  EXPECT_EQ(common::status::Reason(status), "NUMERICS_MISMATCH");
  EXPECT_EQ(crew_.numerics_id, "");
}

// A part of an id is no id.
TEST_F(NumericsTest, IdsAreComparedAsAWhole) {
  EXPECT_THAT(Agree({{"cpu/avx2/1/0"}, {"cpu/avx2/1/00"}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("stage-1 has cpu/avx2/1/00")));
}

// The stages see whether a folder holds other files too.
TEST(DataConfigTest, AFormatThatTheNameDecidedIsLeftOpen) {
  spec::JobSpec spec;
  EXPECT_EQ(DataConfigOf(spec).format(), v1::DataConfig::FORMAT_TEXT);
  spec.data.format_by_name = true;
  EXPECT_EQ(DataConfigOf(spec).format(), v1::DataConfig::FORMAT_UNSPECIFIED);
}

TEST(DataConfigTest, LinesOfTextGetTheDefaultLengthWhileTheDataAreNotRead) {
  spec::JobSpec spec;
  spec.model.context = 8192;
  EXPECT_EQ(DataConfigOf(spec).text_sequence_length(), 8192);
  spec.model.from = "/models/llama";
  EXPECT_EQ(DataConfigOf(spec).sequence_length(), 0);
  EXPECT_EQ(DataConfigOf(spec).text_sequence_length(), 1024);
  spec.data.sequence_length = 2048;
  EXPECT_EQ(DataConfigOf(spec).sequence_length(), 2048);
  EXPECT_EQ(DataConfigOf(spec).text_sequence_length(), 0);
}

// What two ranks own of a tiny model, all its elements in the first parameter.
TEST(CoverageTest, EveryParameterAndElementIsOwnedOnce) {
  const planner::ModelShape model = {.layers = 1,
                                     .width = 8,
                                     .heads = 2,
                                     .kv_heads = 2,
                                     .head_dim = 4,
                                     .ffn_width = 32,
                                     .context = 16,
                                     .vocab = 256};
  Crew crew;
  crew.members = {{.name = "stage-0"}, {.name = "stage-1"}};
  std::vector<v1::StageReady> all(2);
  for (int64_t i = 0; i < planner::CountParameters(model); ++i) {
    v1::ParameterInfo& parameter = *all[i % 2].add_parameters();
    parameter.set_name("p" + std::to_string(i));
    parameter.set_canonical_index(i);
    parameter.set_owned(true);
  }
  const int64_t elements = planner::CountElements(model);
  all[0].mutable_parameters(0)->set_elements(elements);
  EXPECT_OK(CheckCoverage(model, crew, all));

  all[0].mutable_parameters(0)->set_elements(elements - 1);
  EXPECT_THAT(CheckCoverage(model, crew, all),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("have " + std::to_string(elements - 1) +
                                 " elements")));

  // Numbers of which a sum could come round to the model's.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  all[0].mutable_parameters(0)->set_elements(kMost);
  EXPECT_THAT(CheckCoverage(model, crew, all),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("parameter p0 of stage-0 has")));
  all[0].mutable_parameters(0)->set_elements(elements);
  all[1].mutable_parameters(0)->set_elements(-1);
  EXPECT_THAT(CheckCoverage(model, crew, all),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("parameter p1 of stage-1 has -1 elements")));

  all[1].mutable_parameters(0)->set_elements(0);
  all[1].mutable_parameters(0)->set_owned(false);
  EXPECT_THAT(CheckCoverage(model, crew, all),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("no stage has parameter number 1")));
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
