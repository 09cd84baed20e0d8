#include "server/checkpoint/model_index.h"

#include <sys/resource.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ModelIndexTest, ReadsWhatTransformersWrites) {
  ASSERT_OK_AND_ASSIGN(const ModelIndex read, ParseModelIndex(R"({
  "metadata": {"total_size": 40},
  "weight_map": {
    "a": "model-00001-of-00012.safetensors",
    "b": "model-00012-of-00012.safetensors"
  }
})"));
  const std::map<std::string, std::string> shards = {
      {"a", "model-00001-of-00012.safetensors"},
      {"b", "model-00012-of-00012.safetensors"}};
  EXPECT_EQ(read.shards, shards);
}

TEST(ModelIndexTest, WhatIsThereBesideTheMapIsIgnoredWhateverItHolds) {
  ASSERT_OK_AND_ASSIGN(const ModelIndex read, ParseModelIndex(R"({
  "before": [1, -2, 3.5, null, true, "x", {"weight_map": {"b": 1}}],
  "weight_map": {"a": "1.safetensors"},
  "after": {"weight_map": [], "c": {"d": "e"}}, "last": 1e5
})"));
  const std::map<std::string, std::string> shards = {{"a", "1.safetensors"}};
  EXPECT_EQ(read.shards, shards);
}

TEST(ModelIndexTest, RefusesWhatIsNoMapOfTensorsToFiles) {
  const char* const no_map[] = {
      "1",
      "\"weight_map\"",
      "[{\"weight_map\":{\"a\":\"1.safetensors\"}}]",
      "{\"weight_map\":\"1.safetensors\"}",
      "{\"weight_map\":null}",
      "{\"weight_map\":[\"1.safetensors\"]}",
      "{\"weight_map\":{}}",
      "{\"a\":{\"weight_map\":{\"a\":\"1.safetensors\"}}}"};
  for (const char* text : no_map) {
    EXPECT_THAT(ParseModelIndex(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("needs a weight_map")))
        << text;
  }
  for (const char* value :
       {"null", "true", "1", "-1", "0.5", "[]", "{}", "\"\"", "\"a.bin\""}) {
    EXPECT_THAT(
        ParseModelIndex(absl::StrCat("{\"weight_map\":{\"t\":", value, "}}")),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("tensor \"t\" must map to the name")))
        << value;
  }
  EXPECT_THAT(ParseModelIndex(R"({"weight_map":{"t":"1.safetensors"})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not JSON at byte 36")));
}

// The second of two would be what is meant only by chance.
TEST(ModelIndexTest, RefusesWhatIsThereTwice) {
  EXPECT_THAT(
      ParseModelIndex(
          R"({"weight_map":{"t":"1.safetensors","t":"2.safetensors"}})"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tensor \"t\" is there twice")));
  EXPECT_THAT(ParseModelIndex(
                  R"({"weight_map":{"t":"1.safetensors"},"weight_map":{}})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("two weight_maps")));
}

TEST(ModelIndexTest, WhatIsIgnoredTakesNoMemory) {
  const auto peak_kib = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  constexpr int kLevels = 4 << 20;
  const std::string text = absl::StrCat(
      "{\"metadata\":", std::string(kLevels, '['), std::string(kLevels, ']'),
      ",\"weight_map\":{\"a\":\"1.safetensors\"}}");
  const auto before = peak_kib();
  ASSERT_OK_AND_ASSIGN(const ModelIndex read, ParseModelIndex(text));
  EXPECT_EQ(read.shards.size(), 1u);
  EXPECT_LT(peak_kib() - before, 64 << 10);
}

}  // namespace
}  // namespace penstock::server::checkpoint
