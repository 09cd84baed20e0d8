#include "coordinator/state_folder.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class StateFolderTest : public ::testing::Test {
 protected:
  tests::fakes::TempDir dir_;
};

TEST_F(StateFolderTest, IsMadeWithTheFoldersAboveIt) {
  ASSERT_OK_AND_ASSIGN(const StateFolder folder,
                       StateFolder::Open(dir_.Path("a/b/state")));
  EXPECT_TRUE(std::filesystem::is_directory(folder.path()));
  EXPECT_TRUE(std::filesystem::path(folder.path()).is_absolute());
}

TEST_F(StateFolderTest, IsOnesOwnUntilItIsLetGo) {
  const std::string path = dir_.Path("state");
  {
    ASSERT_OK_AND_ASSIGN(const StateFolder first, StateFolder::Open(path));
    EXPECT_THAT(StateFolder::Open(path).status(),
                StatusIs(absl::StatusCode::kAlreadyExists,
                         AllOf(HasSubstr(path), HasSubstr("pid "),
                               HasSubstr(std::to_string(getpid())))));
  }
  EXPECT_OK(StateFolder::Open(path).status());
}

TEST_F(StateFolderTest, WhatIsNoFolderIsRefused) {
  const std::string file = dir_.Path("file");
  std::ofstream(file) << "x";
  EXPECT_THAT(StateFolder::Open(file).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--state-dir"), HasSubstr(file),
                             HasSubstr("Not a directory"))));
  EXPECT_THAT(StateFolder::Open(file + "/below").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ot a directory")));
  EXPECT_THAT(
      StateFolder::Open("/proc/x").status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/proc/x")));
}

}  // namespace
}  // namespace penstock::coordinator
