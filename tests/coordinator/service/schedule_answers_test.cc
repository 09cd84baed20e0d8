#include "coordinator/service/schedule_answers.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::EndsWith;
using ::testing::HasSubstr;

v1::SimulateScheduleRequest Request(const char* schedule, int stages,
                                    int micro_batches) {
  v1::SimulateScheduleRequest request;
  request.set_schedule(schedule);
  request.set_stages(stages);
  request.set_micro_batches(micro_batches);
  return request;
}

TEST(SimulateScheduleTest, AnswersWithTheFormulasOfTheSchedule) {
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       SimulateSchedule(Request("1f1b", 4, 8)));
  EXPECT_THAT(answer.bubble_rate(), DoubleNear(3.0 / 11, 1e-12));
  EXPECT_EQ(answer.makespan(), 33);
  ASSERT_EQ(answer.ranks_size(), 4);
  EXPECT_EQ(answer.ranks(0).peak_in_flight(), 4);
  EXPECT_EQ(answer.ranks(3).peak_in_flight(), 1);
  EXPECT_EQ(answer.ranks(0).commands_size(), 16);
  EXPECT_EQ(answer.edges_size(), 6);
  EXPECT_FALSE(answer.critical_path().empty());
}

TEST(SimulateScheduleTest, ChunksAreTheSchedulesWhereNothingIsSaid) {
  // ZB-V always has two; interleaved has two unless something else is said.
  ASSERT_OK_AND_ASSIGN(const auto v, SimulateSchedule(Request("zb-v", 4, 8)));
  EXPECT_EQ(v.makespan(), 25.5);
  auto request = Request("interleaved", 4, 8);
  ASSERT_OK_AND_ASSIGN(const auto two, SimulateSchedule(request));
  EXPECT_EQ(two.makespan(), 28.5);
  request.set_chunks(4);
  ASSERT_OK_AND_ASSIGN(const auto four, SimulateSchedule(request));
  EXPECT_EQ(four.makespan(), 26.25);
  request = Request("zb-v", 4, 8);
  request.set_chunks(1);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "zb-v: has 2 chunks a rank, chunks is 1"));
}

TEST(SimulateScheduleTest, RanksSayWhenTheyWorkAndWhatTheyHold) {
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       SimulateSchedule(Request("1f1b", 4, 8)));
  const v1::SimulatedRank& last = answer.ranks(3);
  EXPECT_EQ(last.busy(), 24);
  EXPECT_EQ(last.idle(), 9);
  EXPECT_EQ(last.first_start(), 3);
  EXPECT_EQ(last.last_end(), 33 - 3 * 2);
  EXPECT_EQ(answer.ranks(0).peak_activations(), 4);
}

TEST(SimulateScheduleTest, SaysHowManyChunksAreWhere) {
  ASSERT_OK_AND_ASSIGN(const auto v, SimulateSchedule(Request("zb-v", 4, 8)));
  EXPECT_EQ(v.chunks(), 2);
  EXPECT_EQ(v.placement(), "V");
  EXPECT_EQ(v.found(), "");
  auto request = Request("interleaved", 4, 8);
  request.set_chunks(4);
  ASSERT_OK_AND_ASSIGN(const auto loop, SimulateSchedule(request));
  EXPECT_EQ(loop.chunks(), 4);
  EXPECT_EQ(loop.placement(), "loop");
}

TEST(SimulateScheduleTest, AutoSaysWhatItFound) {
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       SimulateSchedule(Request("auto", 4, 8)));
  EXPECT_NE(answer.found(), "");
  EXPECT_FALSE(answer.has_closed_form());
  ASSERT_OK_AND_ASSIGN(const auto fixed,
                       SimulateSchedule(Request("zb-v", 4, 8)));
  EXPECT_LE(answer.makespan(), fixed.makespan());
}

TEST(SimulateScheduleTest, TheTextbookIsQuotedWhereItHasAFormula) {
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       SimulateSchedule(Request("gpipe", 4, 8)));
  EXPECT_EQ(answer.closed_form().formula(), "(K−1)/(M+K−1)");
  EXPECT_DOUBLE_EQ(answer.closed_form().bubble_rate(), 3.0 / 11);
  auto request = Request("file:a.csv", 1, 1);
  request.set_file("0F0,0B0\n");
  ASSERT_OK_AND_ASSIGN(const auto own, SimulateSchedule(request));
  EXPECT_FALSE(own.has_closed_form());
}

// 1F1B of two ranks with transfers of half a unit is one chain of 10: its
// longest part, B of stage 1, takes 4 of it.
TEST(SimulateScheduleTest, SavingsSayWhatAPercentIsWorth) {
  auto request = Request("1f1b", 2, 2);
  request.set_transfer(0.5);
  ASSERT_OK_AND_ASSIGN(const auto answer, SimulateSchedule(request));
  ASSERT_EQ(answer.makespan(), 10);
  ASSERT_EQ(answer.savings_size(), 6);
  const v1::CriticalSaving& first = answer.savings(0);
  EXPECT_EQ(first.what(), "B of stage 1");
  EXPECT_EQ(first.op(), v1::OP_BACKWARD);
  EXPECT_EQ(first.stage(), 1);
  EXPECT_FALSE(first.has_edge());
  EXPECT_EQ(first.count(), 2);
  EXPECT_EQ(first.on_path(), 4);
  EXPECT_DOUBLE_EQ(first.share(), 0.4);
  EXPECT_THAT(first.saved(), DoubleNear(0.04, 1e-12));
  const v1::CriticalSaving& edge = answer.savings(5);
  EXPECT_EQ(edge.op(), v1::OP_UNSPECIFIED);
  EXPECT_TRUE(edge.has_edge());
  EXPECT_EQ(edge.on_path(), 0.5);
}

TEST(SimulateScheduleTest, AnOrderThatIsSentIsSimulated) {
  ASSERT_OK_AND_ASSIGN(const auto named,
                       SimulateSchedule(Request("1f1b", 3, 5)));
  auto request = Request("file:my.csv", 3, 5);
  request.set_file(named.csv());
  ASSERT_OK_AND_ASSIGN(const auto own, SimulateSchedule(request));
  EXPECT_EQ(own.makespan(), named.makespan());
  EXPECT_EQ(own.csv(), named.csv());
  EXPECT_EQ(own.chunks(), 1);
  // Two chunks on one rank, as the file has them.
  request = Request("file:v.csv", 1, 1);
  request.set_file("0F0,1F0,1B0,0B0\n");
  ASSERT_OK_AND_ASSIGN(const auto chunks, SimulateSchedule(request));
  EXPECT_EQ(chunks.chunks(), 2);
  EXPECT_EQ(chunks.makespan(), 3);
  EXPECT_EQ(chunks.ranks(0).peak_in_flight(), 2);
  EXPECT_EQ(chunks.ranks(0).peak_activations(), 1);
}

TEST(SimulateScheduleTest, AnOrderThatIsWrongIsRefusedWithItsPlace) {
  auto request = Request("file:my.csv", 1, 1);
  request.set_file("0F0,0B0x\n");
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("my.csv:1:8: \"0B0x\"")));
  request.set_file("");
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("row")));
}

TEST(SimulateScheduleTest, CsvIsWhatVerifyTakes) {
  ASSERT_OK_AND_ASSIGN(const auto answer,
                       SimulateSchedule(Request("gpipe", 3, 5)));
  v1::VerifyScheduleRequest verify;
  verify.set_file(answer.csv());
  verify.set_file_name("orders.csv");
  verify.set_stages(3);
  verify.set_micro_batches(5);
  ASSERT_OK_AND_ASSIGN(const auto verified, VerifySchedule(verify));
  EXPECT_EQ(verified.commands(), 30);
  EXPECT_EQ(verified.makespan(), answer.makespan());
}

TEST(SimulateScheduleTest, VerifyTakesOrdersOfMegabytes) {
  auto request = Request("zb-h1", 8, 8192);
  request.set_detail(v1::SimulateScheduleRequest::DETAIL_ORDER);
  ASSERT_OK_AND_ASSIGN(const auto answer, SimulateSchedule(request));
  ASSERT_GT(answer.csv().size(), 1u << 20);
  v1::VerifyScheduleRequest verify;
  verify.set_file(answer.csv());
  verify.set_file_name("orders.csv");
  verify.set_stages(8);
  verify.set_micro_batches(8192);
  ASSERT_OK_AND_ASSIGN(const auto verified, VerifySchedule(verify));
  EXPECT_EQ(verified.commands(), 3 * 8 * 8192);
}

TEST(SimulateScheduleTest, TheAnswerHoldsWhatWasAskedFor) {
  auto request = Request("1f1b", 2, 3);
  request.set_detail(v1::SimulateScheduleRequest::DETAIL_SUMMARY);
  ASSERT_OK_AND_ASSIGN(const auto summary, SimulateSchedule(request));
  EXPECT_EQ(summary.ranks(0).commands_size(), 0);
  EXPECT_EQ(summary.ranks(0).busy(), 9);
  EXPECT_EQ(summary.csv(), "");
  EXPECT_GT(summary.savings_size(), 0);
  request.set_detail(v1::SimulateScheduleRequest::DETAIL_COMMANDS);
  ASSERT_OK_AND_ASSIGN(const auto commands, SimulateSchedule(request));
  EXPECT_EQ(commands.ranks(0).commands_size(), 6);
  EXPECT_EQ(commands.csv(), "");
  EXPECT_EQ(commands.savings_size(), 0);
  request.set_detail(v1::SimulateScheduleRequest::DETAIL_ORDER);
  ASSERT_OK_AND_ASSIGN(const auto order, SimulateSchedule(request));
  EXPECT_EQ(order.ranks(0).commands_size(), 0);
  EXPECT_NE(order.csv(), "");
}

TEST(SimulateScheduleTest, SizesBeyondTheLimitsAreRefusedAtOnce) {
  EXPECT_THAT(SimulateSchedule(Request("1f1b", 100000, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ranks is 100000, at most 4096")));
  EXPECT_THAT(
      SimulateSchedule(Request("1f1b", 1025, 1024)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("1025 stages with 1024 micro-batches are more than "
                         "1048576 stage-micro-batches")));
}

TEST(SimulateScheduleTest, AnAnswerThatNoMessageHoldsIsRefused) {
  auto request = Request("1f1b", 1, 1 << 20);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the answer for 1 stages and 1048576 "
                                 "micro-batches is too large")));
  request.set_detail(v1::SimulateScheduleRequest::DETAIL_SUMMARY);
  EXPECT_THAT(SimulateSchedule(request), IsOk());
}

TEST(SimulateScheduleTest, MemoryLimitCountsActivationsOfAStage) {
  auto request = Request("1f1b", 4, 8);
  request.set_memory_limit(4);
  EXPECT_THAT(SimulateSchedule(request), IsOk());
  request.set_memory_limit(3);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("holds 4 activations, 1 more than the limit "
                                 "of 3")));
  request.set_memory_limit(2.5);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("memory_limit 2.5 has room for 2 activations: "
                                 "1f1b: rank 0")));
  request.set_memory_limit(3.999999999);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("memory_limit 3.999999999 has room for 3 "
                                 "activations: 1f1b: rank 0")));
  request.set_memory_limit(1.5);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("memory_limit 1.5 has room for 1 activation: "
                                 "1f1b: rank 0")));
  request.set_memory_limit(1e300);
  EXPECT_THAT(SimulateSchedule(request), IsOk());
}

TEST(SimulateScheduleTest, AutoFitsTheTimesAndTheLimitThatAreGiven) {
  auto request = Request("auto", 4, 8);
  request.set_chunks(1);
  ASSERT_OK_AND_ASSIGN(const auto free, SimulateSchedule(request));
  EXPECT_EQ(free.makespan(), 3 * 8 + 3);
  request.set_memory_limit(2);
  ASSERT_OK_AND_ASSIGN(const auto tight, SimulateSchedule(request));
  EXPECT_GT(tight.makespan(), free.makespan());
  for (const auto& rank : tight.ranks()) EXPECT_LE(rank.peak_in_flight(), 2);

  // Without a word on chunks it may take the V, whose ramp is half as long.
  request.clear_chunks();
  request.set_memory_limit(8);
  ASSERT_OK_AND_ASSIGN(const auto v, SimulateSchedule(request));
  EXPECT_THAT(v.makespan(), DoubleNear(3 * 8 + 1.5, 1e-9));
  request.set_transfer(1);
  ASSERT_OK_AND_ASSIGN(const auto far, SimulateSchedule(request));
  EXPECT_GT(far.makespan(), v.makespan());

  request.set_memory_limit(0.5);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 0 needs 1 activation for one "
                                 "micro-batch, 1 more than its limit of 0")));
}

// It tries few of them.
TEST(SimulateScheduleTest, AutoTakesAnyNumberOfChunks) {
  auto request = Request("auto", 1, 4);
  request.set_chunks(200000);
  ASSERT_OK_AND_ASSIGN(const auto answer, SimulateSchedule(request));
  EXPECT_LE(answer.chunks(), 64);
  EXPECT_THAT(answer.makespan(), DoubleNear(3 * 4, 1e-9));
}

TEST(SimulateScheduleTest, TimesWhoseSumIsNotFiniteAreRefused) {
  auto request = Request("1f1b", 4, 8);
  request.set_forward(1e308);
  EXPECT_THAT(SimulateSchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the times are too large")));
}

TEST(SimulateScheduleTest, RefusesWhatHasNoMeaning) {
  EXPECT_THAT(SimulateSchedule(Request("2f2b", 2, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("there are naive, gpipe, 1f1b, "),
                             EndsWith(", auto, or file:PATH"))));
  EXPECT_THAT(SimulateSchedule(Request("1f1b", 0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  auto request = Request("1f1b", 2, 2);
  request.set_forward(-1);
  EXPECT_THAT(
      SimulateSchedule(request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("forward is -1")));
}

TEST(VerifyScheduleTest, FaultIsShownInTheGrid) {
  v1::VerifyScheduleRequest request;
  request.set_file("0F0,0F0,0B0\n1F0,1B0\n");
  request.set_file_name("orders.csv");
  request.set_stages(2);
  request.set_micro_batches(1);
  EXPECT_THAT(VerifySchedule(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(">0F0<")));
}

}  // namespace
}  // namespace penstock::coordinator::service
