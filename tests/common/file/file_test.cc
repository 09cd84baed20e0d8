#include "common/file/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::file {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

absl::Span<std::byte> BytesOf(std::string& text) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size());
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

TEST(FdTest, IsClosedOnceByItsLastOwner) {
  const tests::fakes::TempDir dir;
  ASSERT_OK_AND_ASSIGN(File file, File::Create(dir.Path("f")));
  const int number = file.descriptor();
  {
    const File moved = std::move(file);
    EXPECT_EQ(moved.descriptor(), number);
    EXPECT_TRUE(fs::exists("/proc/self/fd/" + std::to_string(number)));
  }
  EXPECT_FALSE(fs::exists("/proc/self/fd/" + std::to_string(number)));
}

TEST(FileTest, ReadsExactlyOrAsFarAsTheFileGoes) {
  const tests::fakes::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const File file,
                       File::OpenForRead(dir.Write("f", "0123456789")));
  EXPECT_EQ(file.bytes(), 10);
  std::string four(4, '.');
  ASSERT_OK(file.ReadAt(3, BytesOf(four)));
  EXPECT_EQ(four, "3456");
  EXPECT_THAT(file.ReadUpTo(8, BytesOf(four)), IsOkAndHolds(2u));
  EXPECT_EQ(four, "8956");
  EXPECT_THAT(file.ReadUpTo(10, BytesOf(four)), IsOkAndHolds(0u));
}

TEST(FileTest, AFileThatEndsTooEarlyIsDataLoss) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const File file, File::OpenForRead(path));
  fs::resize_file(path, 5);
  std::string four(4, '.');
  const absl::Status status = file.ReadAt(3, BytesOf(four));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDataLoss, path + ": ends at byte 5"));
  EXPECT_EQ(common::status::Reason(status), "INPUT_NOT_VISIBLE");
}

TEST(FileTest, WhatIsNoFileIsRefusedAtOnceByItsKind) {
  const tests::fakes::TempDir dir;
  const auto missing = File::OpenForRead(dir.Path("none"));
  EXPECT_THAT(missing,
              StatusIs(absl::StatusCode::kNotFound,
                       dir.Path("none") +
                           ": cannot be read: No such file or directory"));
  EXPECT_EQ(common::status::Reason(missing.status()), "INPUT_NOT_VISIBLE");
  EXPECT_THAT(File::OpenForRead(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a folder, not a file")));
  ASSERT_EQ(mkfifo(dir.Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(File::OpenForRead(dir.Path("pipe")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a pipe or a device")));
}

TEST(FileTest, AFileThatWasReplacedIsAnother) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "old");
  ASSERT_OK_AND_ASSIGN(const File old, File::OpenForRead(path));
  ASSERT_OK_AND_ASSIGN(const File same, File::OpenForRead(path));
  EXPECT_EQ(old.identity(), same.identity());
  fs::rename(dir.Write("g", "new"), path);
  ASSERT_OK_AND_ASSIGN(const File other, File::OpenForRead(path));
  EXPECT_FALSE(old.identity() == other.identity());
}

TEST(FileTest, AFullDiskIsSaidWithPathAndReason) {
  ASSERT_OK_AND_ASSIGN(File file, File::Create("/dev/full"));
  const absl::Status status = file.Write("x");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "/dev/full: cannot be written: No space left on "
                               "device"));
  EXPECT_EQ(common::status::Reason(status), "DISK_FULL");
}

TEST(FileTest, AppendsToWhatIsThere) {
  const tests::fakes::TempDir dir;
  for (const char* line : {"one\n", "two\n"}) {
    ASSERT_OK_AND_ASSIGN(File file, File::OpenForAppend(dir.Path("f")));
    ASSERT_OK(file.Write(line));
    ASSERT_OK(file.Close());
  }
  EXPECT_EQ(Contents(dir.Path("f")), "one\ntwo\n");
  ASSERT_OK_AND_ASSIGN(File file, File::OpenForAppend(dir.Path("f")));
  EXPECT_EQ(file.bytes(), 8);
  ASSERT_OK(file.Truncate(4));
  EXPECT_EQ(Contents(dir.Path("f")), "one\n");
}

TEST(SyncFolderTest, AFileSystemThatDoesNotSyncFoldersIsNoError) {
  const Fd proc(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(fsync(proc.get()), -1);
  ASSERT_EQ(errno, EINVAL);
  EXPECT_OK(SyncFolder("/proc"));
}

TEST(SyncFolderTest, AFolderThatIsNotThereIs) {
  const tests::fakes::TempDir dir;
  EXPECT_OK(SyncFolder(dir.path()));
  EXPECT_THAT(SyncFolder(dir.Path("none")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("none: cannot be opened")));
}

TEST(ReplaceFileTest, ReplacesAndLeavesNoTemporaryFile) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "old and longer");
  ASSERT_OK(ReplaceFile({.path = path, .contents = "new"}));
  EXPECT_EQ(Contents(path), "new");
  EXPECT_FALSE(fs::exists(path + ".tmp"));
}

TEST(ReplaceFileTest, AnErrorLeavesTheOldFileAndNothingElse) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write("f", "old");
  fs::create_symlink("/dev/full", path + ".part");
  EXPECT_THAT(
      ReplaceFile(
          {.path = path, .contents = "new", .temporary_suffix = ".part"}),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("No space left")));
  EXPECT_EQ(Contents(path), "old");
  EXPECT_FALSE(fs::is_symlink(path + ".part"));
}

TEST(ReplaceFileTest, ANameThatIsAFolderIsAnErrorAndLeavesNothing) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Path("f");
  fs::create_directories(path + "/inside");
  EXPECT_THAT(ReplaceFile({.path = path, .contents = "new"}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("f.tmp: cannot be renamed to " + path)));
  EXPECT_FALSE(fs::exists(path + ".tmp"));
}

TEST(ReadFileTest, ReadsAllBytesUpToTheLimit) {
  const tests::fakes::TempDir dir;
  const std::string bytes("a\0b\n", 4);
  EXPECT_THAT(ReadFile(dir.Write("f", bytes), 4), IsOkAndHolds(bytes));
  EXPECT_THAT(ReadFile(dir.Write("empty", ""), 0), IsOkAndHolds(""));
  const std::string large(200000, 'x');
  EXPECT_THAT(ReadFile(dir.Write("large", large), 1 << 20),
              IsOkAndHolds(large));
  EXPECT_THAT(
      ReadFile(dir.Path("f"), 3),
      StatusIs(absl::StatusCode::kInvalidArgument,
               dir.Path("f") + ": has more than 3 bytes, which is the limit"));
}

TEST(ReadFileTest, AFileWithoutASizeIsReadToItsEnd) {
  EXPECT_THAT(ReadFile("/proc/self/comm", 1 << 10),
              IsOkAndHolds(::testing::EndsWith("\n")));
}

}  // namespace
}  // namespace penstock::common::file
