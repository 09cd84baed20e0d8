#include "server/checkpoint/model_index.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::checkpoint {
namespace {

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

}  // namespace
}  // namespace penstock::server::checkpoint
