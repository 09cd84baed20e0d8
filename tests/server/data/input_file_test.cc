#include "server/data/input_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/data/input_files.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Read(const InputFile& file, int64_t offset,
                                 int64_t bytes) {
  std::string out(bytes, '\0');
  const absl::Status status = file.Read(
      offset,
      absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()), out.size()));
  if (!status.ok()) return status;
  return out;
}

class InputFileTest : public ::testing::TestWithParam<Descriptor> {
 protected:
  tests::fakes::TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Both, InputFileTest,
                         ::testing::Values(Descriptor::kKept,
                                           Descriptor::kEachRead));

TEST_P(InputFileTest, ReadsAnywhere) {
  const std::string path = dir_.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file, InputFile::Open(path, GetParam()));
  EXPECT_EQ(file->bytes(), 10);
  EXPECT_THAT(Read(*file, 3, 4), IsOkAndHolds("3456"));
  EXPECT_THAT(Read(*file, 9, 1), IsOkAndHolds("9"));
  EXPECT_THAT(Read(*file, 10, 0), IsOkAndHolds(""));
}

TEST_P(InputFileTest, ScanGivesAllBytesInOrder) {
  std::string content((2 << 20) + 12345, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = i * 31 + (i >> 13);
  ASSERT_OK_AND_ASSIGN(const auto file,
                       InputFile::Open(dir_.Write("f", content), GetParam()));
  std::string seen;
  ASSERT_OK(file->Scan([&](int64_t offset, absl::string_view piece) {
    EXPECT_EQ(offset, static_cast<int64_t>(seen.size()));
    seen.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  EXPECT_TRUE(seen == content);
}

TEST_P(InputFileTest, ScanStopsAtTheFirstError) {
  ASSERT_OK_AND_ASSIGN(
      const auto file,
      InputFile::Open(dir_.Write("f", std::string(3 << 20, 'x')), GetParam()));
  int calls = 0;
  EXPECT_THAT(file->Scan([&](int64_t, absl::string_view) {
    ++calls;
    return absl::InvalidArgumentError("enough");
  }),
              StatusIs(absl::StatusCode::kInvalidArgument, "enough"));
  EXPECT_EQ(calls, 1);
}

TEST_P(InputFileTest, AFileThatShrinksIsDataLoss) {
  const std::string path = dir_.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file, InputFile::Open(path, GetParam()));
  std::filesystem::resize_file(path, 4);
  const auto read = Read(*file, 2, 6);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss,
                             AllOf(HasSubstr(path), HasSubstr("must stay"))));
  // What is there still is not of the file that the job read either.
  EXPECT_THAT(Read(*file, 0, 2), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(common::status::Reason(read.status()), "INPUT_NOT_VISIBLE");
}

TEST_P(InputFileTest, AFileThatIsOverwrittenInPlaceIsDataLoss) {
  const std::string path = dir_.Write("f", "0123456789");
  // Longer ago than the file system's clock ticks.
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) - std::chrono::seconds(1));
  ASSERT_OK_AND_ASSIGN(const auto file, InputFile::Open(path, GetParam()));
  EXPECT_THAT(Read(*file, 0, 10), IsOkAndHolds("0123456789"));
  std::fstream(path, std::ios::in | std::ios::out) << "ABC";
  const auto read = Read(*file, 5, 2);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kDataLoss,
                             AllOf(HasSubstr(path), HasSubstr("must stay"))));
  EXPECT_EQ(common::status::Reason(read.status()), "INPUT_NOT_VISIBLE");
}

TEST(InputFileOpenTest, AReplacedFileIsNoticedWhenOpenedForEachRead) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file,
                       InputFile::Open(path, Descriptor::kEachRead));
  std::filesystem::rename(dir.Write("g", "abcdefghij"), path);
  EXPECT_THAT(Read(*file, 0, 1), StatusIs(absl::StatusCode::kDataLoss,
                                          HasSubstr("changed or replaced")));
}

TEST(InputFileOpenTest, AFileThatGrowsSaysHowMuch) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file,
                       InputFile::Open(path, Descriptor::kKept));
  std::ofstream(path, std::ios::app) << "ab";
  EXPECT_THAT(Read(*file, 0, 1),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("has 12 bytes, but had 10")));
}

TEST(InputFileOpenTest, AReplacedFileIsReadOnWhenItsDescriptorIsKept) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto file,
                       InputFile::Open(path, Descriptor::kKept));
  std::filesystem::rename(dir.Write("g", "abcdefghij"), path);
  EXPECT_THAT(Read(*file, 0, 3), IsOkAndHolds("012"));
}

TEST(InputFileOpenTest, WhatCannotBeReadIsNotVisible) {
  const tests::fakes::TempDir dir;
  const auto missing = InputFile::Open(dir.Path("missing"), Descriptor::kKept);
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("missing: cannot be read: No such")));
  EXPECT_EQ(common::status::Reason(missing.status()), "INPUT_NOT_VISIBLE");
  EXPECT_THAT(InputFile::Open(dir.path(), Descriptor::kKept),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a folder, not a file")));
}

TEST(InputFileOpenTest, TooManyOpenFilesAreNoFaultOfThePath) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;  // What is open stays open.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto file = InputFile::Open(path, Descriptor::kKept);
  const auto folder = OpenInput(dir.path(), Format::kText, {});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto too_many =
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("cannot be read: Too many open files"));
  EXPECT_THAT(file, too_many);
  EXPECT_THAT(folder, too_many);
}

TEST(InputFileOpenTest, AFifoIsRefusedWithoutWaitingForAWriter) {
  const tests::fakes::TempDir dir;
  ASSERT_EQ(mkfifo(dir.Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(InputFile::Open(dir.Path("fifo"), Descriptor::kKept),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a pipe or a device")));
}

}  // namespace
}  // namespace penstock::server::data
