#include "client/run_directory.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(RunDirectoryTest, AbsentOrEmptyIsTakenAndRemovedWithoutATrace) {
  tests::fakes::TempDir dir;
  const std::string absent = dir.Path("new");
  ASSERT_OK_AND_ASSIGN(RunDirectory made, RunDirectory::Create(absent));
  EXPECT_TRUE(fs::is_directory(made.logs()));
  std::ofstream(made.path() + "/job.yaml") << "x";
  made.Remove();
  EXPECT_FALSE(fs::exists(absent));

  const std::string empty = dir.Path("empty");
  fs::create_directory(empty);
  ASSERT_OK_AND_ASSIGN(RunDirectory reused, RunDirectory::Create(empty));
  reused.Remove();
  EXPECT_TRUE(fs::is_empty(empty));  // The user's folder stays, empty.
}

TEST(RunDirectoryTest, WhatHoldsSomethingIsRefusedUntouched) {
  tests::fakes::TempDir dir;
  dir.Write("full/precious.txt", "data");
  EXPECT_THAT(
      RunDirectory::Create(dir.Path("full")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not empty")));
  EXPECT_THAT(
      RunDirectory::Create(dir.Path("full/precious.txt")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no folder")));
  EXPECT_TRUE(fs::exists(dir.Path("full/precious.txt")));
}

TEST(RunDirectoryTest, DefaultHasNameAndTimeAndALatestLink) {
  tests::fakes::TempDir dir;
  const absl::Time now = absl::FromUnixSeconds(1767225600);
  ASSERT_OK_AND_ASSIGN(const RunDirectory first,
                       RunDirectory::CreateDefault(dir.path(), "gpt", now));
  EXPECT_THAT(first.path(), HasSubstr("/runs/gpt-20"));
  ASSERT_OK_AND_ASSIGN(RunDirectory second,
                       RunDirectory::CreateDefault(dir.path(), "gpt", now));
  EXPECT_THAT(second.path(), EndsWith("-2"));
  const fs::path latest = fs::path(dir.path()) / "runs" / "latest";
  EXPECT_EQ(fs::read_symlink(latest), fs::path(second.path()).filename());
  second.Remove();
  EXPECT_EQ(fs::read_symlink(latest), fs::path(first.path()).filename());
}

TEST(RunDirectoryTest, ALatestThatIsNoLinkIsKeptAndTold) {
  for (const char* precious : {"runs/latest", "runs/latest/precious.txt"}) {
    const tests::fakes::TempDir dir;
    dir.Write(precious, "data");
    ASSERT_OK_AND_ASSIGN(RunDirectory made,
                         RunDirectory::CreateDefault(dir.path(), "gpt",
                                                     absl::FromUnixSeconds(0)));
    EXPECT_EQ(made.note(),
              dir.Path("runs/latest") + " is no link and stays as it is");
    EXPECT_TRUE(fs::is_directory(made.logs()));
    made.Remove();
    EXPECT_EQ(fs::file_size(dir.Path(precious)), 4);
    const fs::directory_iterator left(dir.Path("runs"));
    EXPECT_EQ(std::distance(begin(left), end(left)), 1);
  }
}

TEST(RunDirectoryTest, APathThatCannotBeOneIsTheUsersMistake) {
  const tests::fakes::TempDir dir;
  dir.Write("file", "data");
  fs::create_symlink("nowhere", dir.Path("dangling"));
  const struct {
    std::string path, why;
  } kTable[] = {
      {dir.Path("file/run"), "Not a directory"},
      {dir.Path("dangling"), "is a link to something that is not there"},
      {dir.Path(std::string(300, 'x')), "File name too long"},
      {"/proc/foo", "/proc/foo: No such file or directory"},
  };
  for (const auto& [path, why] : kTable) {
    EXPECT_THAT(RunDirectory::Create(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  }
  EXPECT_FALSE(fs::exists(dir.Path("nowhere")));
}

TEST(RunDirectoryTest, RemovingTheFirstRunLeavesNoRunsFolder) {
  tests::fakes::TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      RunDirectory only,
      RunDirectory::CreateDefault(dir.path(), "gpt", absl::FromUnixSeconds(0)));
  only.Remove();
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(RunDirectoryTest, FoldersAboveItAreRemovedWithIt) {
  tests::fakes::TempDir dir;
  ASSERT_OK_AND_ASSIGN(RunDirectory deep,
                       RunDirectory::Create(dir.Path("a/b/run/")));
  EXPECT_TRUE(fs::is_directory(dir.Path("a/b/run/logs")));
  deep.Remove();
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(RunDirectoryTest, RunsAtOnceGetFoldersOfTheirOwn) {
  tests::fakes::TempDir dir;
  constexpr int kRuns = 8;
  std::vector<std::string> paths(kRuns);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRuns; ++i) {
    threads.emplace_back([&dir, &path = paths[i]] {
      const auto made = RunDirectory::CreateDefault(dir.path(), "gpt",
                                                    absl::FromUnixSeconds(0));
      if (made.ok()) path = made->path();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(paths, Each(Not(IsEmpty())));
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), kRuns);
}

TEST(RunDirectoryTest, NothingStaysOfAModelThatIsNotWhole) {
  tests::fakes::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const RunDirectory run,
                       RunDirectory::Create(dir.Path("run")));
  for (const char* file :
       {".model-tmp-1-2/model.safetensors", ".model-tmp-1-4/probe-0",
        "model/config.json", "summary.json"}) {
    dir.Write(absl::StrCat("run/", file), "x");
  }
  run.RemoveUnfinished();
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(run.path())) {
    left.insert(entry.path().filename().string());
  }
  EXPECT_EQ(left, (std::set<std::string>{"logs", "model", "summary.json"}));
  fs::remove_all(run.path());
  run.RemoveUnfinished();  // Somebody has removed all of it.
}

TEST(RunDirectoryTest, RemoveLeavesTheLinkOfALaterRun) {
  tests::fakes::TempDir dir;
  const absl::Time now = absl::FromUnixSeconds(0);
  ASSERT_OK_AND_ASSIGN(RunDirectory first,
                       RunDirectory::CreateDefault(dir.path(), "gpt", now));
  ASSERT_OK_AND_ASSIGN(const RunDirectory second,
                       RunDirectory::CreateDefault(dir.path(), "gpt", now));
  first.Remove();
  EXPECT_EQ(fs::read_symlink(dir.Path("runs/latest")),
            fs::path(second.path()).filename());
}

}  // namespace
}  // namespace penstock::client
