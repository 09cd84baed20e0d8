#include "coordinator/dispatch/stall_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kSilence = absl::Seconds(3);

RankStanding Computes(const std::string& name, const std::string& command) {
  return {.name = name, .command = command, .since = absl::Seconds(42)};
}

RankStanding Waits(const std::string& name, int source, int target, int peer,
                   v1::EdgeKind kind = v1::EDGE_KIND_GRADIENT) {
  RankStanding standing = {.name = name,
                           .command = "B stage 0 micro-batch 1 of step 7",
                           .since = absl::Seconds(41),
                           .waits_for = peer};
  standing.awaited.emplace();
  standing.awaited->set_source_stage(source);
  standing.awaited->set_target_stage(target);
  standing.awaited->set_kind(kind);
  return standing;
}

TEST(StallReportTest, TheOneThatComputesIsNamedBeforeThoseThatWait) {
  std::vector<RankStanding> ranks = {
      Waits("stage-0", 1, 0, 1), Waits("stage-1", 2, 1, 2),
      Computes("stage-2", "F stage 2 micro-batch 3 of step 7")};
  // All have reported nothing; only one of them is to blame for it.
  for (RankStanding& rank : ranks) rank.missing = true;
  const StallReport report = ReportStall(ranks, kSilence);
  EXPECT_EQ(report.culprit, 2);
  EXPECT_EQ(report.text,
            "stage-2 computes F stage 2 micro-batch 3 of step 7 for 42s; "
            "stage-0 waits for gradient 1->0 from stage-1 for 41s (B stage 0 "
            "micro-batch 1 of step 7); "
            "stage-1 waits for gradient 2->1 from stage-2 for 41s (B stage 0 "
            "micro-batch 1 of step 7)");
}

TEST(StallReportTest, ASilentOneIsBlamedBeforeOneThatComputes) {
  RankStanding silent = Waits("stage-1", 0, 1, 0, v1::EDGE_KIND_ACTIVATION);
  silent.silent = absl::Seconds(5);
  const StallReport report =
      ReportStall({Computes("stage-0", "F"), silent}, kSilence);
  EXPECT_EQ(report.culprit, 1);
  EXPECT_THAT(report.text, StartsWith("stage-1 has been silent for 5s, last "
                                      "heard of at B stage 0 micro-batch 1"));
}

TEST(StallReportTest, OneWithoutACommandIsBlamedForAReportThatIsMissing) {
  RankStanding idle = {.name = "stage-1", .missing = true};
  RankStanding done = {.name = "stage-2"};
  const StallReport report =
      ReportStall({Waits("stage-0", 1, 0, 1), idle, done}, kSilence);
  EXPECT_EQ(report.culprit, 1);
  EXPECT_THAT(report.text,
              StartsWith("stage-1 has no command and does not report"));
  EXPECT_THAT(report.text, Not(HasSubstr("stage-2")));
}

TEST(StallReportTest, WhereEachWaitsForAnotherNobodyIsBlamed) {
  const StallReport report =
      ReportStall({Waits("stage-0", 1, 0, 1),
                   Waits("stage-1", 0, 1, 0, v1::EDGE_KIND_ACTIVATION)},
                  kSilence);
  EXPECT_EQ(report.culprit, -1);
  EXPECT_THAT(report.text, HasSubstr("stage-1 waits for activation 0->1"));
}

// Its reports came later, but what it was at is as old as the heartbeat.
TEST(StallReportTest, ALossSaysWhatItWasAtWhenAndWhoWaits) {
  RankStanding lost = Computes("stage-1", "F stage 1 micro-batch 3 of step 7");
  lost.silent = absl::ZeroDuration();
  lost.told = absl::Milliseconds(900);
  EXPECT_EQ(
      ReportLoss({Waits("stage-0", 1, 0, 1), lost}, 1),
      "; at its last heartbeat, 900ms before, it was at F stage 1 micro-batch "
      "3 "
      "of step 7; stage-0 "
      "waits for gradient 1->0 from stage-1 for 41s (B stage 0 micro-batch 1 "
      "of step 7)");
  EXPECT_EQ(ReportLoss({{.name = "stage-0"}}, 0), "");
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
