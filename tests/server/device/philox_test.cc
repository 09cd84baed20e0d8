#include "server/device/philox.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::server::device {
namespace {

using ::testing::ElementsAre;

// The vectors of Random123's kat_vectors for "philox4x32 10".
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(Philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                         {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(PhiloxTest, CounterLayoutIsTheDocumentedOne) {
  const DropoutWords words({.seed = 0x1122334455667788u,
                            .step = 0x100000007,
                            .sample = 0x900000009,
                            .site = 0xABCD});
  EXPECT_THAT(words.key(), ElementsAre(0x55667788u, 0x11223344u));
  EXPECT_THAT(words.Counter(0x123456789ABC),
              ElementsAre(0x56789ABCu, 0x1234ABCDu, 9u, 7u));
}

TEST(PhiloxTest, ElementsOfABlockAreItsWords) {
  const DropoutWords words({.seed = 1, .step = 2, .sample = 3, .site = 4});
  for (int64_t e = 0; e < 12; ++e) {
    EXPECT_EQ(words.Word(e), words.Block(e / 4)[e % 4]);
  }
}

TEST(PhiloxTest, EachCoordinateChangesTheWords) {
  std::set<uint32_t> seen;
  seen.insert(DropoutWords({.seed = 1}).Word(0));
  seen.insert(DropoutWords({.seed = uint64_t{1} << 32}).Word(0));
  seen.insert(DropoutWords({.seed = 1, .step = 1}).Word(0));
  seen.insert(DropoutWords({.seed = 1, .sample = 1}).Word(0));
  seen.insert(DropoutWords({.seed = 1, .site = 1}).Word(0));
  seen.insert(DropoutWords({.seed = 1}).Word(4));
  seen.insert(DropoutWords({.seed = 1}).Word(int64_t{4} << 32));
  EXPECT_EQ(seen.size(), 7);
}

TEST(PhiloxTest, ThresholdIsWhereTheUniformReachesTheRate) {
  for (const float rate : {0.0f, 0.1f, 0.25f, 0.5f, 0.999999f}) {
    const uint32_t threshold = KeepThreshold(rate);
    EXPECT_GE(threshold * 0x1p-24, double{rate});
    EXPECT_TRUE(Kept(threshold << 8, threshold));
    EXPECT_TRUE(Kept(0xFFFFFFFFu, threshold)) << rate;
    if (threshold == 0) continue;
    EXPECT_LT((threshold - 1) * 0x1p-24, double{rate});
    EXPECT_FALSE(Kept((threshold << 8) - 1, threshold));
  }
}

}  // namespace
}  // namespace penstock::server::device
