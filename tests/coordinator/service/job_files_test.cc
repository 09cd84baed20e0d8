#include "coordinator/service/job_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Mode = dispatch::WriteJobFile::Mode;

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(JobFilesTest, WritesInOrderAndMakesFolders) {
  tests::fakes::TempDir dir;
  const std::string folder = (fs::path(dir.path()) / "jobs" / "a").string();
  std::vector<absl::Status> failures;
  {
    JobFiles files([&](const auto&, const absl::Status& status) {
      failures.push_back(status);
    });
    for (int i = 0; i < 3; ++i) {
      files.Post({.directory = folder,
                  .name = "metrics.jsonl",
                  .contents = std::to_string(i) + "\n",
                  .mode = Mode::kAppend});
    }
    files.Post({.directory = folder, .name = "job.yaml", .contents = "old"});
    files.Post({.directory = folder, .name = "job.yaml", .contents = "new"});
    files.Drain();
    EXPECT_EQ(Contents(fs::path(folder) / "metrics.jsonl"), "0\n1\n2\n");
    EXPECT_EQ(Contents(fs::path(folder) / "job.yaml"), "new");
  }
  EXPECT_THAT(failures, SizeIs(0));
  EXPECT_FALSE(fs::exists(fs::path(folder) / "job.yaml.tmp"));
}

TEST(JobFilesTest, FailureNamesThePath) {
  tests::fakes::TempDir dir;
  std::ofstream(fs::path(dir.path()) / "file") << "no folder";
  const absl::Status status =
      WriteNow({.directory = (fs::path(dir.path()) / "file").string(),
                .name = "job.yaml",
                .contents = ""});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("/file: Not a directory")));
}

TEST(JobFilesTest, FullDiskIsResourceExhausted) {
  const absl::Status status = WriteNow({.directory = "/dev",
                                        .name = "full",
                                        .contents = "more than nothing",
                                        .mode = Mode::kAppend});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace penstock::coordinator::service
