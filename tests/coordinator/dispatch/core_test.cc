#include "coordinator/dispatch/core.h"

#include <set>
#include <string>

#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using nlohmann::json;
using penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using v1::Job;

std::vector<json> Lines(const std::string& text) {
  std::vector<json> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(json::parse(text.substr(begin, end - begin)));
  }
  return lines;
}

TEST(CoreTest, AJobRunsToItsEnd) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 4)).status());
  cluster.Run();
  const Job job = cluster.Job();
  EXPECT_EQ(job.state(), Job::STATE_SUCCEEDED) << job.DebugString();
  EXPECT_EQ(job.step(), 3);
  EXPECT_EQ(cluster.stage(0).releases().size(), 3);
  EXPECT_EQ(cluster.stage(1).releases().size(), 3);
  EXPECT_EQ(Lines(cluster.File("metrics.jsonl")).size(), 3);
  EXPECT_THAT(cluster.File("job.yaml"), HasSubstr("partition"));
}

TEST(CoreTest, RevisionsAreContiguousAndTheTerminalStateIsLast) {
  FakeCluster cluster;
  cluster.Start(1);
  ASSERT_OK(cluster.Create(TinyJob(1, 1)).status());
  cluster.Run();
  int64_t revision = 0;
  for (const v1::JobEvent& event : cluster.events()) {
    EXPECT_EQ(event.revision(), ++revision);
  }
  ASSERT_TRUE(cluster.events().back().has_job());
  EXPECT_EQ(cluster.events().back().job().state(), Job::STATE_SUCCEEDED);
  EXPECT_FALSE(cluster.events().back().job().summary_json().empty());
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
