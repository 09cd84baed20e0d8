#include "coordinator/schedule/auto_earliest_rank.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::coordinator::schedule {
namespace {

TEST(EarliestRank, BeginsWithTheFirstRankAtNoTime) {
  for (const int ranks : {1, 2, 3, 5, 8, 9}) {
    const EarliestRank earliest(ranks);
    EXPECT_EQ(earliest.Find(), 0);
    EXPECT_EQ(earliest.Least(), 0);
    for (int r = 0; r < ranks; ++r) EXPECT_EQ(earliest.Of(r), 0);
  }
}

// Few times, so that many are equal, and numbers of ranks that are no power of
// two.
TEST(EarliestRank, OfEqualTimesTheLowestRankIsFound) {
  std::mt19937 random(1);
  for (const int ranks : {1, 2, 3, 5, 6, 7, 8, 11, 16, 17}) {
    SCOPED_TRACE(ranks);
    EarliestRank earliest(ranks);
    std::vector<double> times(ranks, 0);
    for (int i = 0; i < 400; ++i) {
      const auto rank =
          static_cast<int>(random() % static_cast<uint32_t>(ranks));
      const double time = random() % 8 == 0 ? kNever : random() % 4;
      earliest.Set(rank, time);
      times[rank] = time;
      const auto least = std::min_element(times.begin(), times.end());
      ASSERT_EQ(earliest.Least(), *least);
      ASSERT_EQ(earliest.Of(rank), time);
      if (*least == kNever) continue;
      ASSERT_EQ(earliest.Find(), least - times.begin());
    }
  }
}

}  // namespace
}  // namespace penstock::coordinator::schedule
