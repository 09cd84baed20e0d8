#include "server/data/permutation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::server::data {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> All(const Permutation::Options& options) {
  const Permutation permutation(options);
  std::vector<int64_t> values(options.size);
  for (int64_t i = 0; i < options.size; ++i) values[i] = permutation.At(i);
  return values;
}

TEST(PermutationTest, IsABijectionForEverySizeSeedAndPass) {
  std::vector<int64_t> sizes(130);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (const int64_t size : {255, 256, 257, 1023, 1024, 1025, 4096, 5000}) {
    sizes.push_back(size);
  }
  for (const int64_t size : sizes) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      for (const int64_t pass : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
        std::vector<int64_t> values =
            All({.size = size, .seed = seed, .pass = pass});
        std::sort(values.begin(), values.end());
        for (int64_t i = 0; i < size; ++i) ASSERT_EQ(values[i], i) << size;
      }
    }
  }
}

// The order of the data is part of "same bits": these never change. Computed
// by another implementation (Python, from the description in the header).
TEST(PermutationTest, GoldenOrder) {
  EXPECT_THAT(All({.size = 10, .seed = 1, .pass = 0}),
              ElementsAre(6, 2, 5, 7, 1, 3, 0, 9, 4, 8));
  EXPECT_THAT(All({.size = 10, .seed = 1, .pass = 1}),
              ElementsAre(6, 1, 2, 4, 9, 7, 5, 8, 0, 3));
  EXPECT_THAT(All({.size = 10, .seed = 2, .pass = 0}),
              ElementsAre(5, 6, 4, 9, 2, 0, 1, 8, 7, 3));
  const Permutation large(
      {.size = int64_t{1000000000000}, .seed = 1, .pass = 0});
  EXPECT_EQ(large.At(0), 219294449867);
  EXPECT_EQ(large.At(999999999999), 89841405613);
}

TEST(PermutationTest, EveryBitRangeOfSeedAndPassMatters) {
  std::set<std::vector<int64_t>> orders;
  int tried = 0;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31,
                              uint64_t{1} << 32, uint64_t{1} << 63}) {
    for (const int64_t pass :
         {int64_t{0}, int64_t{1}, int64_t{1} << 31, int64_t{1} << 32}) {
      orders.insert(All({.size = 50, .seed = seed, .pass = pass}));
      ++tried;
    }
  }
  EXPECT_EQ(orders.size(), tried);
}

TEST(PermutationTest, LargeSizesStayInRangeWithoutCollisions) {
  for (const int64_t size : {(int64_t{1} << 32) + 1, (int64_t{1} << 40) + 7,
                             std::numeric_limits<int64_t>::max()}) {
    const Permutation permutation({.size = size, .seed = 3, .pass = 0});
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 500; ++i) {
      for (const int64_t value :
           {permutation.At(i), permutation.At(size - 1 - i)}) {
        EXPECT_GE(value, 0);
        EXPECT_LT(value, size);
        EXPECT_TRUE(seen.insert(value).second);
      }
    }
  }
}

// Over many passes each index goes everywhere equally often, and so does the
// pair of the first two: chi-square against the 99.99% quantiles.
TEST(PermutationTest, OrdersLookUniform) {
  constexpr int64_t kSize = 7;
  constexpr int kPasses = 7 * 6 * 60;
  std::vector<std::vector<int>> hits(kSize, std::vector<int>(kSize));
  std::vector<std::vector<int>> pairs = hits;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto order = All({.size = kSize, .seed = 42, .pass = pass});
    for (int64_t i = 0; i < kSize; ++i) ++hits[i][order[i]];
    ++pairs[order[0]][order[1]];
  }
  for (int64_t i = 0; i < kSize; ++i) {
    double chi = 0;
    const double expected = double{kPasses} / kSize;
    for (const int count : hits[i]) {
      chi += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(chi, 27.9) << "index " << i;  // 6 degrees of freedom.
  }
  double chi = 0;
  const double expected = double{kPasses} / (kSize * (kSize - 1));
  for (int64_t a = 0; a < kSize; ++a) {
    for (int64_t b = 0; b < kSize; ++b) {
      if (a == b) continue;
      chi += (pairs[a][b] - expected) * (pairs[a][b] - expected) / expected;
    }
  }
  EXPECT_LT(chi, 82.1);  // 41 degrees of freedom.
}

}  // namespace
}  // namespace penstock::server::data
