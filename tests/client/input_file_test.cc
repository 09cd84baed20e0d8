#include "client/input_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST(InputFileTest, ReadsAllBytesOfAFile) {
  const tests::fakes::TempDir dir;
  const std::string bytes("a\0b\n", 4);
  EXPECT_THAT(ReadInputFile("job file", dir.Write("job.yaml", bytes)),
              IsOkAndHolds(bytes));
  EXPECT_THAT(ReadInputFile("job file", dir.Write("empty", "")),
              IsOkAndHolds(""));
}

TEST(InputFileTest, WhatIsNoFileIsRefusedAtOnceByItsKind) {
  const tests::fakes::TempDir dir;
  EXPECT_THAT(
      ReadInputFile("job file", dir.Path("none")),
      StatusIs(kRefused, AllOf(HasSubstr("job file " + dir.Path("none")),
                               HasSubstr("No such file"))));
  EXPECT_THAT(ReadInputFile("schedule file", dir.path()),
              StatusIs(kRefused, HasSubstr("is a folder")));
  const std::string pipe = dir.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadInputFile("job file", pipe),
              StatusIs(kRefused, HasSubstr("is a pipe or a device")));
  EXPECT_THAT(ReadInputFile("job file", "/dev/zero"),
              StatusIs(kRefused, HasSubstr("is a pipe or a device")));
}

TEST(InputFileTest, MoreThanTheLimitIsRefused) {
  const tests::fakes::TempDir dir;
  const std::string most(kMaxInputFileBytes, 'x');
  EXPECT_THAT(ReadInputFile("schedule file", dir.Write("most", most)),
              IsOkAndHolds(most));
  EXPECT_THAT(ReadInputFile("schedule file", dir.Write("more", most + "x")),
              StatusIs(kRefused, HasSubstr("more than 1048576 bytes")));
}

}  // namespace
}  // namespace penstock::client
