#include "coordinator/jobs/job_state.h"

#include <set>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::jobs {
namespace {

using penstock::testing::StatusIs;
using ::testing::HasSubstr;
using v1::Job;

TEST(JobStateTest, ExactlyTheTransitionsOfTheDiagramAreLegal) {
  const std::set<std::pair<int, int>> legal = {
      {1, 2}, {2, 3}, {3, 4},                  // 1 to 3
      {1, 6}, {2, 6}, {3, 6}, {4, 6}, {6, 9},  // 4, 5
      {1, 8}, {2, 8}, {3, 8}, {4, 8}, {4, 7},  // 6, 7
  };
  for (int from = Job::STATE_QUEUED; from <= Job::STATE_CANCELLED; ++from) {
    for (int to = Job::STATE_QUEUED; to <= Job::STATE_CANCELLED; ++to) {
      const absl::Status status =
          CheckTransition(Job::State(from), Job::State(to));
      if (legal.count({from, to}) > 0) {
        EXPECT_TRUE(status.ok()) << from << " -> " << to;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
            << from << " -> " << to;
      }
    }
  }
}

TEST(JobStateTest, AnIllegalTransitionNamesBothStates) {
  EXPECT_THAT(CheckTransition(Job::STATE_SUCCEEDED, Job::STATE_RUNNING),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("SUCCEEDED cannot become RUNNING")));
}

TEST(JobStateTest, ReasonsHaveNamesBothWays) {
  EXPECT_EQ(ReasonName(Job::STATE_REASON_STAGE_LOST), "STAGE_LOST");
  EXPECT_EQ(ReasonName(Job::STATE_REASON_UNSPECIFIED), "");
  EXPECT_EQ(ReasonFromName("OUT_OF_MEMORY"), Job::STATE_REASON_OUT_OF_MEMORY);
  EXPECT_EQ(ReasonFromName("EDGE_BROKEN"), std::nullopt);
  EXPECT_EQ(ReasonFromName("UNSPECIFIED"), std::nullopt);
}

}  // namespace
}  // namespace penstock::coordinator::jobs
