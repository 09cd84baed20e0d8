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
  EXPECT_THAT(ReadJobFile(dir.Write("job.yaml", bytes)), IsOkAndHolds(bytes));
  EXPECT_THAT(ReadJobFile(dir.Write("empty", "")), IsOkAndHolds(""));
}

TEST(InputFileTest, WhatIsNoFileIsRefusedAtOnceByItsKind) {
  const tests::fakes::TempDir dir;
  EXPECT_THAT(
      ReadJobFile(dir.Path("none")),
      StatusIs(kRefused, AllOf(HasSubstr("job file " + dir.Path("none")),
                               HasSubstr("No such file"))));
  EXPECT_THAT(ReadScheduleFile(dir.path()),
              StatusIs(kRefused, HasSubstr("is a folder")));
  const std::string pipe = dir.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(ReadJobFile(pipe),
              StatusIs(kRefused, HasSubstr("is a pipe or a device")));
  EXPECT_THAT(ReadJobFile("/dev/zero"),
              StatusIs(kRefused, HasSubstr("is a pipe or a device")));
}

TEST(InputFileTest, MoreThanTheLimitIsRefused) {
  const tests::fakes::TempDir dir;
  const std::string most(kMaxJobFileBytes, 'x');
  EXPECT_THAT(ReadJobFile(dir.Write("most", most)), IsOkAndHolds(most));
  const std::string more = dir.Write("more", most + "x");
  EXPECT_THAT(ReadJobFile(more),
              StatusIs(kRefused, HasSubstr("more than 1048576 bytes")));
  EXPECT_THAT(ReadScheduleFile(more), IsOkAndHolds(most + "x"));
  std::filesystem::resize_file(more, kMaxScheduleFileBytes);
  EXPECT_OK(ReadScheduleFile(more));
  std::filesystem::resize_file(more, kMaxScheduleFileBytes + 1);
  EXPECT_THAT(ReadScheduleFile(more),
              StatusIs(kRefused, HasSubstr("more than 47185920 bytes")));
}

}  // namespace
}  // namespace penstock::client
