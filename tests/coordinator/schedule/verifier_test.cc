#include "coordinator/schedule/verifier.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/text.h"
#include "gtest/gtest.h"
#include "tests/coordinator/schedule/example_schedules.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::schedule {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Schedule Parse(const std::string& text, int micro_batches) {
  const int ranks =
      static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  const absl::StatusOr<Schedule> schedule = ParseCsv(
      text, {.ranks = ranks, .micro_batches = micro_batches, .name = "s"});
  EXPECT_OK(schedule.status());
  return *schedule;
}

absl::Status VerifyText(const std::string& text, int micro_batches) {
  return Verify(Parse(text, micro_batches), {});
}

TEST(Verify, AcceptsSplitAndFullBackwardsInOneSchedule) {
  EXPECT_OK(VerifyText("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1I1,1W1\n", 2));
}

// Invariant 1.
TEST(Verify, RefusesADuplicateAndShowsBothPlaces) {
  EXPECT_THAT(VerifyText("0F0,0F0,0B0\n1F0,1B0\n", 1),
              StatusIs(kInvalid,
                       AllOf(HasSubstr("s: rank 0, position 1 (0F0): the same "
                                       "command is already at position 0"),
                             HasSubstr("rank 0    0F0 >0F0<  0B0\n"))));
}

TEST(Verify, RefusesAMissingCommand) {
  EXPECT_THAT(VerifyText("0F0,0B0\n1F0\n", 1),
              StatusIs(kInvalid, HasSubstr("rank 1, end of its row: 1B0 (or "
                                           "1I0 and 1W0) is missing")));
  EXPECT_THAT(VerifyText("0F0,0B0\n1F0,1I0\n", 1),
              StatusIs(kInvalid, HasSubstr("1W0 is missing")));
  EXPECT_THAT(VerifyText("0B0\n1F0,1B0\n", 1),
              StatusIs(kInvalid, HasSubstr("0F0 is missing")));
}

TEST(Verify, RefusesBothAFullAndASplitBackward) {
  EXPECT_THAT(VerifyText("0F0,0B0,0W0\n1F0,1B0\n", 1),
              StatusIs(kInvalid,
                       HasSubstr("position 2 (0W0): 0B0 at position 1 already "
                                 "does part of it")));
}

TEST(Verify, RefusesMicroBatchesOutOfRangeThoughTheirNumberIsRight) {
  EXPECT_THAT(VerifyText("0F0,0F99,0B0,0B99\n1F0,1F99,1B0,1B99\n", 2),
              StatusIs(kInvalid, HasSubstr("rank 0, position 1 (0F99): there "
                                           "is no micro-batch 99, "
                                           "micro-batches are 0 to 1")));
}

// Invariant 2.
TEST(Verify, RefusesABackwardBeforeItsForward) {
  EXPECT_THAT(VerifyText("0B0,0F0\n1F0,1B0\n", 1),
              StatusIs(kInvalid, HasSubstr("position 0 (0B0): must come after "
                                           "0F0, which is at position 1")));
}

TEST(Verify, RefusesAWeightGradientBeforeItsInputGradient) {
  EXPECT_THAT(VerifyText("0F0,0W0,0I0\n1F0,1B0\n", 1),
              StatusIs(kInvalid, HasSubstr("(0W0): must come after 0I0")));
}

TEST(Verify, RefusesChunksOfOneRankInTheWrongOrder) {
  EXPECT_THAT(VerifyText("1F0,0F0,1B0,0B0\n", 1),
              StatusIs(kInvalid, HasSubstr("(1F0): must come after 0F0")));
  EXPECT_THAT(VerifyText("0F0,1F0,0B0,1B0\n", 1),
              StatusIs(kInvalid, HasSubstr("(0B0): must come after 1B0")));
}

// PyTorch reports this late, as "can't schedule sends/recvs", with no place.
TEST(Verify, RefusesOrdersThatNoTimeFitsAsACycleWithPlaces) {
  EXPECT_THAT(
      VerifyText("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", 2),
      StatusIs(kInvalid,
               AllOf(HasSubstr("no order of time fits these rows; cycle:"),
                     HasSubstr("rank 0, position 1 (0B0) must come after rank "
                               "1, position 2 (1B0), which comes after rank 1, "
                               "position 1 (1F1)"),
                     HasSubstr(">"))));
}

// Invariant 3.
TEST(Verify, RefusesAStageOnTwoRanks) {
  EXPECT_THAT(VerifyText("0F0,0B0,1B0\n1F0\n", 1),
              StatusIs(kInvalid, HasSubstr("rank 0, position 2 (1B0): stage 1 "
                                           "is on rank 1 (loop placement)")));
}

TEST(Verify, RefusesAPlacementThatDoesNotFit) {
  Schedule schedule = Parse("0F0,0B0\n1F0,1B0\n", 1);
  schedule.placement.rank_of_stage = {0, 0};
  EXPECT_THAT(Verify(schedule, {}),
              StatusIs(kInvalid, HasSubstr("rank 0 has 2 stages")));
  schedule.placement.rank_of_stage = {0, 2};
  EXPECT_THAT(Verify(schedule, {}),
              StatusIs(kInvalid, HasSubstr("stage 1 is on rank 2")));
}

// Invariant 4.
TEST(Verify, RefusesForwardsInAnotherOrderThanTheirMessages) {
  EXPECT_THAT(
      VerifyText("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n", 2),
      StatusIs(kInvalid,
               HasSubstr("rank 1, position 0 (1F1): message 0 of the edge from "
                         "stage 0 is 0F0's output (rank 0, position 0)")));
}

TEST(Verify, RefusesInputGradientsInAnotherOrderThanTheirMessages) {
  EXPECT_THAT(
      VerifyText("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1F1,1I1,1I0,1W0,1W1\n", 2),
      StatusIs(kInvalid, HasSubstr("message 0 of the edge from stage 1 is "
                                   "1I1's output")));
}

// Invariant 6.
TEST(Verify, RefusesWeightGradientsThatDoNotAscend) {
  EXPECT_THAT(VerifyText("0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n", 2),
              StatusIs(kInvalid, HasSubstr("position 3 (0B0): weight gradients "
                                           "of stage 0 must be added in "
                                           "ascending")));
}

// Invariant 5: "F, send, receive, B, send, receive" with nothing buffered.
TEST(Verify, FindsTheDeadlocksOfPlain1F1BWithBlockingSends) {
  for (const auto& [ranks, micro_batches] :
       {std::pair{2, 2}, {2, 4}, {3, 4}, {4, 8}, {4, 2}}) {
    ASSERT_OK_AND_ASSIGN(
        const Schedule schedule,
        Generate("1f1b", {.ranks = ranks, .micro_batches = micro_batches}));
    EXPECT_THAT(
        Verify(schedule, {.send_buffers = 0, .uniform_slots = 0}),
        StatusIs(kInvalid, AllOf(HasSubstr("deadlock with rendezvous sends"),
                                 HasSubstr("cycle:"),
                                 HasSubstr("which has no "
                                           "slot before"),
                                 HasSubstr(">"))))
        << ranks << ", " << micro_batches;
    EXPECT_OK(Verify(schedule, {.send_buffers = 1, .uniform_slots = 0}));
    EXPECT_OK(Verify(schedule, {.send_buffers = 0, .uniform_slots = 1}));
    EXPECT_OK(Verify(schedule, {}));
  }
}

TEST(Verify, PrintsADeadlockAsTheCycleThatItIs) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 2}));
  EXPECT_THAT(
      Verify(schedule, {.send_buffers = 0, .uniform_slots = 0}),
      StatusIs(
          kInvalid,
          "1f1b: rank 0, position 1 (0F1): deadlock with rendezvous sends; "
          "cycle:\n"
          "  rank 0, position 1 (0F1) cannot complete before its output "
          "message 1 of activation 0->1, which has no slot before rank 1, "
          "position 1 (1B0) is complete\n"
          "  rank 1, position 1 (1B0) cannot complete before its output "
          "message 0 of gradient 1->0, which has no slot before rank 0, "
          "position 1 (0F1) is complete\n"
          "position  0    1     2    3\n"
          "rank 0    0F0 >0F1<  0B0  0B1\n"
          "rank 1    1F0  1B0   1F1  1B1\n"));
}

// Invariant 7.
TEST(Verify, RefusesMoreBytesThanARankMayHold) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("gpipe", {.ranks = 2, .micro_batches = 4}));
  LoweringOptions options;
  options.memory.stages = {{100, 0}, {100, 0}};
  options.memory.limits = {399, 1000};
  EXPECT_THAT(
      Verify(schedule, options),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("rank 0, position 3 (0F3): holds 400 bytes of "
                               "activations, 1 more than the limit of 399"),
                     HasSubstr(">0F3<"))));
  options.memory.limits = {400, 1000};
  EXPECT_OK(Verify(schedule, options));
}

TEST(Verify, CountsWhatIsHeldUntilWWhereItIsTheLarger) {
  const Schedule schedule = Parse("0F0,0I0,0W0\n1F0,1B0\n", 1);
  LoweringOptions options;
  options.memory.stages = {{100, 150}, {1, 1}};
  options.memory.limits = {149, 100};
  EXPECT_THAT(Verify(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("position 1 (0I0): holds 150 bytes")));
  options.memory.limits = {150, 100};
  EXPECT_OK(Verify(schedule, options));
}

TEST(Verify, CountsSlotsAndSendBuffers) {
  ASSERT_OK_AND_ASSIGN(const Schedule schedule,
                       Generate("1f1b", {.ranks = 2, .micro_batches = 4}));
  LoweringOptions options;
  options.memory.stages = {{100, 0}, {100, 0}};
  options.memory.slot = {.activation = 7, .gradient = 5, .tied = 0};
  // Two activations, one gradient slot, one activation to send.
  options.memory.limits = {212, 1000};
  EXPECT_OK(Verify(schedule, options));
  options.memory.limits = {211, 1000};
  EXPECT_THAT(Verify(schedule, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("rank 0 needs 212 bytes with the fewest "
                                 "slots, 1 more than its limit of 211")));
}

TEST(Verify, KeepsErrorsOfLargeSchedulesShort) {
  ASSERT_OK_AND_ASSIGN(Schedule schedule,
                       Generate("1f1b", {.ranks = 32, .micro_batches = 256}));
  std::swap(schedule.orders[17][200], schedule.orders[17][202]);
  const absl::Status status = Verify(schedule, {});
  EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr("rank 17")));
  EXPECT_LT(status.message().size(), 4096u);
  for (auto& order : schedule.orders) {
    std::sort(order.begin(), order.end(),
              [](const Command& a, const Command& b) {
                return std::make_pair(a.micro_batch, a.op != Op::kForward) <
                       std::make_pair(b.micro_batch, b.op != Op::kForward);
              });
  }
  EXPECT_OK(Verify(schedule, {}));  // Naive is correct too.
}

TEST(Verify, AcceptsRandomCorrectSchedulesOfEveryKind) {
  std::mt19937 random(20240601);
  for (int i = 0; i < 400; ++i) {
    const Shape shape{.ranks = 1 + static_cast<int>(random() % 5),
                      .chunks = 1 + static_cast<int>(random() % 3),
                      .micro_batches = 1 + static_cast<int>(random() % 9)};
    const Schedule schedule =
        RandomSchedule(shape,
                       {.shuffle_forwards = random() % 2 == 0,
                        .shuffle_placement = random() % 2 == 0},
                       &random);
    LoweringOptions options{.tied_embedding = random() % 2 == 0,
                            .reduce_replicas = random() % 2 == 0};
    ASSERT_THAT(Verify(schedule, options), IsOk()) << PrintCsv(schedule);
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
