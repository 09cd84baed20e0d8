#include "coordinator/state_folder.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator {
namespace {

using ::penstock::testing::IsOkAndHolds;
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

TEST_F(StateFolderTest, EachStartHasAHigherTerm) {
  const std::string path = dir_.Path("state");
  for (int64_t term = 1; term <= 12; ++term) {
    ASSERT_OK_AND_ASSIGN(StateFolder folder, StateFolder::Open(path));
    EXPECT_THAT(folder.NextTerm(), IsOkAndHolds(term));
  }
  std::ifstream file(path + "/term");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "12\n");
}

TEST_F(StateFolderTest, ADamagedTermIsNamedAndKept) {
  const std::string path = dir_.Path("state");
  ASSERT_OK_AND_ASSIGN(StateFolder folder, StateFolder::Open(path));
  for (const char* contents :
       {"", "\n", "12", "1", "0\n", "-1\n", "+2\n", "02\n", " 2\n", "2\n\n",
        "2.5\n", "two\n", "9223372036854775807\n", "92233720368547758070\n"}) {
    std::ofstream(path + "/term") << contents;
    EXPECT_THAT(
        folder.NextTerm().status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(path + "/term"), HasSubstr("damaged"))))
        << contents;
    std::ifstream file(path + "/term");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), contents);
  }
  std::ofstream(path + "/term") << std::string(1000, '1') << "\n";
  EXPECT_THAT(
      folder.NextTerm().status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path + "/term")));
  std::filesystem::remove(path + "/term");
  std::filesystem::create_directory(path + "/term");
  EXPECT_THAT(
      folder.NextTerm().status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path + "/term")));
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
