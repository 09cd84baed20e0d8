#include "coordinator/schedule/forward_order.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/verifier.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

std::string Text(const LoweredProgram& program, int rank, int micro_batches,
                 int group) {
  std::string text;
  for (const Command& command :
       ForwardOrder(program, rank, micro_batches, group)) {
    absl::StrAppend(&text, ToString(command), " ");
  }
  return text;
}

// With one micro-batch after the other a rank of a V would wait for its second
// stage all the time.
TEST(ForwardOrder, GoesThroughTheStagesOfARankInGroups) {
  ASSERT_OK_AND_ASSIGN(
      const Schedule order,
      Generate("zb-v", {.ranks = 2, .chunks = 2, .micro_batches = 4}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, LowerVerified(order, {}));
  EXPECT_EQ(Text(program, 0, 3, 2), "0F0 0F1 3F0 3F1 0F2 3F2 ");
  EXPECT_EQ(Text(program, 1, 3, 2), "1F0 1F1 2F0 2F1 1F2 2F2 ");
  EXPECT_EQ(Text(program, 1, 3, 1), "1F0 2F0 1F1 2F1 1F2 2F2 ");
}

TEST(ForwardOrder, WithOneChunkIsTheOrderOfMicroBatches) {
  ASSERT_OK_AND_ASSIGN(const Schedule order,
                       Generate("zb-h2", {.ranks = 3, .micro_batches = 9}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram program, LowerVerified(order, {}));
  EXPECT_EQ(Text(program, 1, 3, ForwardGroup(program)), "1F0 1F1 1F2 ");
}

TEST(ForwardGroup, IsAsLargeAsTheSlotsLetItBe) {
  ASSERT_OK_AND_ASSIGN(
      const Schedule loop,
      Generate("interleaved", {.ranks = 4, .chunks = 2, .micro_batches = 8}));
  ASSERT_OK_AND_ASSIGN(const LoweredProgram round, LowerVerified(loop, {}));
  EXPECT_EQ(ForwardGroup(round), 4);

  ASSERT_OK_AND_ASSIGN(
      const Schedule v,
      Generate("zb-v", {.ranks = 4, .chunks = 2, .micro_batches = 8}));
  ASSERT_OK_AND_ASSIGN(LoweredProgram down_and_up, LowerVerified(v, {}));
  for (const int slots : {1, 2, 3}) {
    down_and_up.stages[4].slots = slots;  // What rank 3 hands over to itself.
    EXPECT_EQ(ForwardGroup(down_and_up), slots);
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
