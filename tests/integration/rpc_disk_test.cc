// A disk that does not answer holds up the jobs whose results go there, and
// nothing else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/rpc_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock {
namespace {

using RpcDiskTest = ::penstock::testing::RpcCluster;

TEST_F(RpcDiskTest, AResultFolderThatHangsHoldsNobodyElseUp) {
  StartCoordinator();
  ASSERT_OK_AND_ASSIGN(const v1::Job job,
                       client_->CreateJob(Request({.stages = 1})));
  // Opening it for writing waits for somebody who reads.
  std::filesystem::create_directory(dir_.Path("run"));
  const std::string pipe = dir_.Path("run/events.jsonl");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_OK(client_->CancelJob(job.id(), absl::Seconds(10)).status());
  EXPECT_OK(client_->ListStages().status());
  const int reader = open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  std::vector<v1::JobEvent> events;
  EXPECT_EQ(Watch(job.id(), events).state(), v1::Job::STATE_CANCELLED);
  EXPECT_TRUE(std::filesystem::exists(dir_.Path("run/summary.json")));
  coordinator_.reset();
  close(reader);
}

}  // namespace
}  // namespace penstock
