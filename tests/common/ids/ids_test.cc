#include <set>
#include <string>

#include "common/ids/edge.h"
#include "common/ids/generated_ids.h"
#include "common/ids/names.h"
#include "common/ids/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::ids {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(NamesTest, JobNamesFollowThePattern) {
  const std::string forty(40, 'a');
  for (const std::string& name :
       {std::string("a"), std::string("a1"), std::string("a-b"), forty}) {
    EXPECT_OK(CheckJobName(name));
    EXPECT_OK(CheckJobId(name));
    EXPECT_OK(CheckPoolName(name));
  }
  for (const std::string& name :
       {std::string(), std::string("1a"), std::string("-a"), std::string("a-"),
        std::string("A"), std::string("a_b"), std::string("a.b"),
        std::string("a/b"), std::string("\xc3\xa4"), forty + "a"}) {
    EXPECT_THAT(CheckJobName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("1 to 40 of a-z, 0-9 and -")))
        << name;
    EXPECT_THAT(CheckPoolName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("must be 1 to 40 of a-z, 0-9 and -")))
        << name;
  }
  EXPECT_OK(CheckJobId(forty + "-abc12"));
  EXPECT_THAT(CheckJobId(forty + "-abc123"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 to 46 of a-z, 0-9 and -")));
}

TEST(NamesTest, StageNamesMayHoldHostNames) {
  EXPECT_OK(CheckStageName("stage-0"));
  EXPECT_OK(CheckStageName("10.0.0.7-cpu"));
  EXPECT_OK(CheckStageName("node7.rack2.example.org-cuda0"));
  EXPECT_OK(CheckStageName(std::string(128, 'a')));
  for (const std::string& name :
       {std::string(), std::string(".a"), std::string("a."), std::string("A"),
        std::string("a b"), std::string("a/b"), std::string(129, 'a')}) {
    EXPECT_THAT(CheckStageName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("1 to 128 of a-z, 0-9, . and -")));
  }
}

TEST(NamesTest, AnErrorQuotesLittleAndEscapes) {
  const std::string message(CheckJobName(std::string(1000, '\x1b')).message());
  EXPECT_THAT(message, HasSubstr("\\x1b"));
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
  EXPECT_LT(message.size(), 500u);
}

TEST(GeneratedIdsTest, JobIdIsNameAndFiveLetters) {
  uint64_t next = 0;
  EXPECT_EQ(MakeJobId("llama", [&] { return next++; }), "llama-abcde");
  next = 34;
  EXPECT_EQ(MakeJobId("llama", [&] { return next++; }), "llama-89abc");
  EXPECT_OK(CheckJobId(MakeJobId(std::string(40, 'a'), SystemRandom())));
}

TEST(GeneratedIdsTest, UuidHasVersionAndVariant) {
  EXPECT_EQ(MakeUuid([] { return ~uint64_t{0}; }),
            "ffffffff-ffff-4fff-bfff-ffffffffffff");
  EXPECT_EQ(MakeUuid([] { return uint64_t{0}; }),
            "00000000-0000-4000-8000-000000000000");
  EXPECT_THAT(MakeUuid(SystemRandom()),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                           "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(GeneratedIdsTest, UuidsAreRecognised) {
  EXPECT_TRUE(IsUuid(MakeUuid(SystemRandom())));
  EXPECT_FALSE(IsUuid(""));
  EXPECT_FALSE(IsUuid("00000000-0000-4000-8000-00000000000"));
  EXPECT_FALSE(IsUuid("00000000-0000-1000-8000-000000000000"));
  EXPECT_FALSE(IsUuid("00000000-0000-4000-c000-000000000000"));
  EXPECT_FALSE(IsUuid("0000000000000-4000-8000-000000000000"));
  EXPECT_FALSE(IsUuid("0000000G-0000-4000-8000-000000000000"));
}

TEST(EdgeTest, IsCalledByKindAndBothEnds) {
  const auto name = [](int source, int target, EdgeKind kind) {
    return ToString({source, target, kind});
  };
  EXPECT_EQ(name(0, 1, EdgeKind::kActivation), "activation 0->1");
  EXPECT_EQ(name(1, 0, EdgeKind::kGradient), "gradient 1->0");
  EXPECT_EQ(name(2, 0, EdgeKind::kTiedGradient), "tied gradient 2->0");
  EXPECT_EQ(name(0, 2, EdgeKind::kTiedSum), "tied sum 0->2");
  EXPECT_EQ(name(0, 0, static_cast<EdgeKind>(9)), "edge 0->0");
}

TEST(SystemRandomTest, ValuesDiffer) {
  const RandomSource random = SystemRandom();
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random());
  EXPECT_EQ(seen.size(), 100u);
}

}  // namespace
}  // namespace penstock::common::ids
