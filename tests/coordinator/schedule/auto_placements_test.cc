// Which placements the automatic scheduler tries.
#include <vector>

#include "coordinator/schedule/auto_schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::schedule {
namespace {

using ::testing::ElementsAre;

std::vector<int> ChunksTried(const Shape& shape) {
  std::vector<int> chunks;
  for (const Placement& placement : PlacementsToTry(shape)) {
    const RankShape ranks{.ranks = shape.ranks,
                          .chunks = placement.stages() / shape.ranks};
    if (placement == LoopPlacement(ranks)) chunks.push_back(ranks.chunks);
  }
  return chunks;
}

TEST(PlacementsToTry, AreFewHoweverManyChunksAreAllowed) {
  EXPECT_THAT(ChunksTried({.ranks = 2}), ElementsAre(1));
  EXPECT_EQ(PlacementsToTry({.ranks = 2}).size(), 1);
  EXPECT_THAT(ChunksTried({.ranks = 2, .chunks = 3}), ElementsAre(1, 2, 3));
  EXPECT_EQ(PlacementsToTry({.ranks = 2, .chunks = 3}).size(), 4);  // The V.
  EXPECT_THAT(ChunksTried({.ranks = 2, .chunks = 40}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 40));
  EXPECT_THAT(ChunksTried({.ranks = 1, .chunks = 1 << 20}),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64));
  EXPECT_THAT(ChunksTried({.ranks = 64, .chunks = 64, .micro_batches = 1024}),
              ElementsAre(1, 2));
  EXPECT_THAT(ChunksTried({.ranks = 1024, .chunks = 2, .micro_batches = 1024}),
              ElementsAre(1));
}

}  // namespace
}  // namespace penstock::coordinator::schedule
