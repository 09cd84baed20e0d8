// Which schedules there are, and how wrong shapes are refused.
#include <string>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Generate, KnowsEveryName) {
  for (const NamedSchedule& row : kNamedSchedules) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_OK(Generate(row.name, {.chunks = row.default_chunks.value_or(1),
                                  .micro_batches = 2})
                  .status());
    EXPECT_EQ(FindSchedule(row.name), &row);
    EXPECT_EQ(FindSchedule(row.value), &row);
  }
  EXPECT_EQ(FindSchedule(ScheduleKind::kFile), nullptr);
}

TEST(Generate, HasThePlacementThatTheTableSays) {
  for (const NamedSchedule& row : kNamedSchedules) {
    SCOPED_TRACE(std::string(row.name));
    const Shape shape{.ranks = 3,
                      .chunks = row.default_chunks.value_or(1),
                      .micro_batches = 6};
    ASSERT_OK_AND_ASSIGN(const Schedule schedule, Generate(row.name, shape));
    EXPECT_EQ(schedule.name, row.name);
    EXPECT_EQ(schedule.placement,
              PlacementOf(row, {.ranks = 3, .chunks = shape.chunks}));
    EXPECT_EQ(PlacementName(schedule.placement), row.v_shaped ? "V" : "loop");
  }
}

TEST(Generate, RefusesShapesWithoutMeaning) {
  EXPECT_THAT(Generate("1f1b", {.ranks = 2, .chunks = 2, .micro_batches = 2}),
              StatusIs(kInvalid, "1f1b: has 1 chunk a rank, chunks is 2"));
  for (const NamedSchedule& row : kNamedSchedules) {
    if (row.fixed_chunks != 2) continue;
    EXPECT_THAT(
        Generate(row.name, {.ranks = 2, .chunks = 3, .micro_batches = 4}),
        StatusIs(kInvalid,
                 std::string(row.name) + ": has 2 chunks a rank, chunks is 3"));
  }
  EXPECT_THAT(Generate("gpipe", {.ranks = 0}),
              StatusIs(kInvalid, HasSubstr("number of ranks is 0")));
  EXPECT_THAT(Generate("naive", {.ranks = 1, .micro_batches = -3}),
              StatusIs(kInvalid, HasSubstr("number of micro-batches is -3")));
  EXPECT_THAT(Generate("looped-bfs", {.ranks = 1, .chunks = 0}),
              StatusIs(kInvalid, HasSubstr("number of chunks is 0")));
  EXPECT_THAT(Generate("naive", {.ranks = 4096, .micro_batches = 4096}),
              StatusIs(kInvalid, HasSubstr("more than")));
  EXPECT_THAT(
      Generate("2f2b", {}),
      StatusIs(kInvalid, HasSubstr("there is no schedule \"2f2b\"; there are "
                                   "naive, gpipe, 1f1b, interleaved, ")));
}

TEST(Generate, SaysRuleAndNumbersOfGroupsThatAreNotEqual) {
  for (const std::string name : {"interleaved", "zb1p-interleaved"}) {
    EXPECT_THAT(
        Generate(name, {.ranks = 4, .chunks = 2, .micro_batches = 9}),
        StatusIs(kInvalid,
                 name + ": M mod max(1, M//K) must be 0 for groups of equal "
                        "size; M = 9 micro-batches on K = 4 ranks are 2 groups "
                        "and 1 over; M = 8 and M = 10 are possible"));
    // The next higher number of groups can be nearer.
    EXPECT_THAT(
        Generate(name, {.ranks = 2, .chunks = 2, .micro_batches = 15}),
        StatusIs(kInvalid, HasSubstr("7 groups and 1 over; M = 14 and M = 16 "
                                     "are possible")));
    // And so says what is proposed.
    for (const auto& [ranks, micro_batches] :
         {std::pair{4, 8}, {4, 10}, {2, 14}, {2, 16}}) {
      EXPECT_OK(Generate(
          name, {.ranks = ranks, .chunks = 2, .micro_batches = micro_batches}));
    }
  }
}

TEST(Generate, SaysHowManyMicroBatchesDualpipeVNeeds) {
  EXPECT_THAT(
      Generate("dualpipe-v", {.ranks = 4, .chunks = 2, .micro_batches = 7}),
      StatusIs(kInvalid,
               "dualpipe-v: M must be at least 2K; M = 7 micro-batches on "
               "K = 4 ranks, at least 8 are needed"));
  EXPECT_OK(
      Generate("dualpipe-v", {.ranks = 4, .chunks = 2, .micro_batches = 8}));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
