#include "coordinator/planner/partitioner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "common/status/key_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::planner {
namespace {

using ::penstock::common::status::KeyPath;
using penstock::testing::IsOkAndHolds;
using penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelCosts Costs(double embedding, double block, double head) {
  ModelCosts costs;
  costs.embedding.forward = embedding;
  costs.block.forward = block;
  costs.head.forward = head;
  return costs;
}

// Largest stage, and the sum of squares.
std::pair<double, double> Score(const ModelCosts& costs,
                                const std::vector<int64_t>& partition) {
  double largest = 0, squares = 0;
  for (size_t s = 0; s < partition.size(); ++s) {
    double cost = static_cast<double>(partition[s]) * costs.block.total();
    if (s == 0) cost += costs.embedding.total();
    if (s + 1 == partition.size()) cost += costs.head.total();
    largest = std::max(largest, cost);
    squares += cost * cost;
  }
  return {largest, squares};
}

// Every partition there is.
std::pair<double, double> BestByEnumeration(const ModelCosts& costs,
                                            int64_t blocks, int stages) {
  std::pair<double, double> best(std::numeric_limits<double>::infinity(), 0);
  std::vector<int64_t> partition(stages, 0);
  const std::function<void(int, int64_t)> place = [&](int s, int64_t left) {
    const bool inside = s > 0 && s + 1 < stages;
    if (s + 1 == stages) {
      partition[s] = left;
      best = std::min(best, Score(costs, partition));
      return;
    }
    for (int64_t n = inside ? 1 : 0; n <= left; ++n) {
      partition[s] = n;
      place(s + 1, left - n);
    }
  };
  place(0, blocks);
  return best;
}

TEST(BalancedPartitionTest, IsAsGoodAsTheBestOfAll) {
  std::mt19937 random(20261129);  // Seed.
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](int most) {
      return static_cast<int>(random() % most);
    };
    const int64_t blocks = 1 + draw(9);
    const int stages =
        1 + draw(static_cast<int>(std::min<int64_t>(blocks + 2, 6)));
    // Whole numbers, so that sums compare exactly.
    const ModelCosts costs = Costs(draw(30), 1 + draw(10), draw(60));
    ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> partition,
                         BalancedPartition(costs, blocks, stages));
    EXPECT_OK(CheckPartition(partition, blocks, stages));
    EXPECT_EQ(Score(costs, partition), BestByEnumeration(costs, blocks, stages))
        << "blocks " << blocks << " stages " << stages << " embedding "
        << costs.embedding.total() << " block " << costs.block.total()
        << " head " << costs.head.total();
  }
}

TEST(BalancedPartitionTest, AHeavyHeadGetsFewerBlocks) {
  EXPECT_THAT(BalancedPartition(Costs(0, 1, 3), 9, 3),
              IsOkAndHolds(ElementsAre(4, 4, 1)));
}

TEST(BalancedPartitionTest, OfEqualStagesTheLaterGetsTheBlock) {
  EXPECT_THAT(BalancedPartition(Costs(0, 1, 0), 5, 3),
              IsOkAndHolds(ElementsAre(1, 2, 2)));
}

TEST(BalancedPartitionTest, TwoStagesMoreThanBlocksIsTheMost) {
  EXPECT_THAT(BalancedPartition(Costs(1, 1, 1), 3, 5),
              IsOkAndHolds(ElementsAre(0, 1, 1, 1, 0)));
  const absl::Status status = BalancedPartition(Costs(1, 1, 1), 3, 6).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "6 virtual stages, but 3 blocks + embedding + "
                               "head fill at most 5"));
  EXPECT_EQ(KeyPath(status), "pipeline.stages");
}

TEST(CheckPartitionTest, NamesTheElementThatIsWrong) {
  EXPECT_OK(CheckPartition({0, 3, 1}, 4, 3));
  const auto key = [](std::vector<int64_t> partition) {
    return KeyPath(CheckPartition(partition, 4, 3));
  };
  EXPECT_EQ(key({2, 0, 2}), "pipeline.partition[1]");
  EXPECT_EQ(key({5, 1, -2}), "pipeline.partition[0]");
  EXPECT_EQ(key({2, 4, -2}), "pipeline.partition[2]");
  EXPECT_EQ(key({2, 2}), "pipeline.partition");
  EXPECT_EQ(key({1, 1, 1}), "pipeline.partition");
  EXPECT_THAT(CheckPartition({1, 1, 1}, 4, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "its blocks sum to 3, must be the model's 4"));
}

TEST(LayersOfStagesTest, NoBlockIsLostOrTwiceThere) {
  const std::vector<StageLayers> stages =
      LayersOfStages(std::vector<int64_t>{0, 3, 1});
  EXPECT_THAT(
      stages,
      ElementsAre(
          StageLayers{.first_block = 0, .end_block = 0, .embedding = true},
          StageLayers{.first_block = 0, .end_block = 3},
          StageLayers{.first_block = 3, .end_block = 4, .head = true}));
}

}  // namespace
}  // namespace penstock::coordinator::planner
