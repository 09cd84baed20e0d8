// Lines of text as one stream: each is decoded once for all the windows in it,
// threads do not disturb each other, and memory that is not there is said so.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/data/dataset.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/data/dataset_case.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using TextLinesTest = DatasetCase;

std::string TextLine(absl::string_view text) {
  return absl::StrCat("{\"text\":\"", text, "\"}\n");
}

TEST_F(TextLinesTest, ALineIsReadOnceForAllItsWindows) {
  const std::string path =
      dir_.Write("t.jsonl", absl::StrCat(TextLine(std::string(100, 'a')),
                                         TextLine(std::string(100, 'b'))));
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(Options(path, 10)));
  std::vector<int32_t> ids(10), labels(10);
  const SequenceOut out = {.ids = absl::MakeSpan(ids),
                           .labels = absl::MakeSpan(labels)};
  ASSERT_OK(dataset->ReadTraining(0, out));
  std::filesystem::resize_file(path, 0);
  ASSERT_OK(dataset->ReadTraining(9, out));
  EXPECT_EQ(ids, std::vector<int32_t>(10, 'a'));
  EXPECT_EQ(labels.front(), 'a');
  EXPECT_EQ(labels.back(), '\n');
  // The next line is in it too.
  EXPECT_THAT(dataset->ReadTraining(10, out),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
}

TEST_F(TextLinesTest, ThreadsThatReadThemDoNotDisturbEachOther) {
  std::string content, stream;
  for (int line = 0; line < 40; ++line) {
    const std::string text(1 + line % 7, static_cast<char>('a' + line % 26));
    absl::StrAppend(&content, TextLine(text));
    absl::StrAppend(&stream, text, "\n");
  }
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Dataset::Open(Options(dir_.Write("t.jsonl", content), 3)));
  const auto read_all = [&](int64_t from) {
    std::vector<int32_t> ids(3);
    const int64_t n = dataset->train_sequences();
    for (int64_t i = from; i < from + 5 * n; ++i) {
      const int64_t index = 7 * i % n;
      CHECK_OK(dataset->ReadTraining(index, {.ids = absl::MakeSpan(ids)}));
      for (int j = 0; j < 3; ++j) CHECK_EQ(ids[j], stream[3 * index + j]);
    }
  };
  std::thread other([&] { read_all(11); });
  read_all(0);
  other.join();
}

// The sanitizers' allocators end the process where there is no memory.
#ifndef __has_feature
#define __has_feature(feature) 0  // g++ has none.
#endif
#if !PENSTOCK_TSAN && !__has_feature(address_sanitizer)

// Leaves the process no more than `bytes` beside what it has, while it lives.
class LittleMemory {
 public:
  explicit LittleMemory(int64_t bytes) {
    CHECK_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit = {
        .rlim_cur = static_cast<rlim_t>(pages * getpagesize() + bytes),
        .rlim_max = before_.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~LittleMemory() { CHECK_EQ(setrlimit(RLIMIT_AS, &before_), 0); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_;
};

TEST_F(TextLinesTest, ALineThatThereIsNoMemoryForIsNoChangedFile) {
  const std::string path =
      dir_.Write("t.jsonl", TextLine(std::string(40 << 20, 'a')));
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(Options(path, 10)));
  // For the bytes, or for these and not for what the parser needs.
  for (const int64_t bytes : {8 << 20, 60 << 20}) {
    std::vector<int32_t> ids(10);
    absl::Status status;
    {
      const LittleMemory limit(bytes);
      status = dataset->ReadTraining(3, {.ids = absl::MakeSpan(ids)});
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 AllOf(HasSubstr(path), HasSubstr("at byte 0"),
                                       HasSubstr("no memory for a line of"))))
        << bytes;
    EXPECT_EQ(common::status::Reason(status),
              common::status::kReasonOutOfMemory);
  }
  std::vector<int32_t> ids(10);
  EXPECT_OK(dataset->ReadTraining(3, {.ids = absl::MakeSpan(ids)}));
}

TEST_F(TextLinesTest, MoreLinesThanThereIsMemoryForAreRefusedByName) {
  std::string content;
  while (content.size() < (16 << 20)) content += TextLine("");
  const std::string path = dir_.Write("t.jsonl", content);
  absl::Status status;
  {
    const LittleMemory limit(12 << 20);
    status = Dataset::Open(Options(path, 10)).status();
  }
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(absl::StrCat("data.train: ", path)),
                             HasSubstr("no memory"), HasSubstr("24 bytes"))));
  EXPECT_EQ(common::status::Reason(status), common::status::kReasonOutOfMemory);
}

#endif

}  // namespace
}  // namespace penstock::server::data
