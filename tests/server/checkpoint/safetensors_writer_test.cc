// Model folders, written.
#include "server/checkpoint/safetensors_writer.h"

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/model_folder_reader.h"
#include "server/checkpoint/model_index.h"
#include "server/checkpoint/safetensors_file.h"
#include "server/checkpoint/safetensors_header.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/checkpoint/model_folder_case.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using WrittenModelFolderTest = ModelFolderCase;

constexpr absl::string_view kSuffix = ".tmp-1-1-test";

TEST_F(WrittenModelFolderTest, WhatIsWrittenIsReadBack) {
  ASSERT_OK_AND_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(
          {.path = Path(kModelFile),
           .temporary_suffix = std::string(kSuffix),
           .tensors = {{embedding_.name, {3, 2}}, {norm_.name, {2}}}}));
  ASSERT_OK(writer.Append(embedding_.name, {1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(std::filesystem::exists(Path(kModelFile)));
  ASSERT_OK(writer.Append(norm_.name, {7, 8}));
  ASSERT_OK(writer.Close());

  EXPECT_FALSE(
      std::filesystem::exists(Path(absl::StrCat(kModelFile, kSuffix))));
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(ReadAll(reader, embedding_.name, 6),
              ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_OK_AND_ASSIGN(const auto file,
                       SafetensorsFile::Open(Path(kModelFile)));
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
}

TEST_F(WrittenModelFolderTest, AnUnfinishedFileNeverGetsItsName) {
  {
    ASSERT_OK_AND_ASSIGN(
        SafetensorsWriter writer,
        SafetensorsWriter::Create({.path = Path(kModelFile),
                                   .temporary_suffix = std::string(kSuffix),
                                   .tensors = {{norm_.name, {2}}}}));
    EXPECT_THAT(writer.Append(norm_.name, {7}),
                StatusIs(absl::StatusCode::kInternal));
    EXPECT_THAT(writer.Append("other", {7, 8}),
                StatusIs(absl::StatusCode::kInternal));
    EXPECT_THAT(writer.Close(), StatusIs(absl::StatusCode::kInternal));
  }
  EXPECT_FALSE(std::filesystem::exists(Path(kModelFile)));
}

TEST_F(WrittenModelFolderTest, WritingIntoAMissingFolderNamesThePath) {
  EXPECT_THAT(
      SafetensorsWriter::Create({.path = Path("none/model.safetensors"),
                                 .temporary_suffix = std::string(kSuffix)})
          .status(),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr(Path("none/model.safetensors"))));
}

TEST(SafetensorsWriterTest, DataBeginAtAMultipleOfEight) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdefgh"}) {
    const WrittenTensor tensor{.name = name, .shape = {1}};
    EXPECT_EQ(
        FormatSafetensorsHeader(absl::MakeConstSpan(&tensor, 1)).size() % 8, 0)
        << name;
  }
}

TEST(SafetensorsWriterTest,
     TensorsAreListedInTheirOrderInTimeThatGrowsWithThem) {
  const auto cpu_time = [](int count) {
    std::vector<WrittenTensor> tensors;
    for (int i = count; i > 0; --i) {
      tensors.push_back({.name = absl::StrCat("h.", i), .shape = {1}});
    }
    const std::clock_t start = std::clock();
    const std::string text = FormatSafetensorsHeader(tensors);
    const std::clock_t taken = std::clock() - start;
    EXPECT_LT(text.find(absl::StrCat("\"h.", count, "\"")),
              text.find("\"h.1\""));
    const auto header =
        ParseSafetensorsHeader(text.substr(kLengthBytes), 4 * int64_t{count});
    EXPECT_OK(header.status());
    EXPECT_EQ(header->tensors.front().name, tensors.front().name);
    EXPECT_EQ(header->tensors.back().name, tensors.back().name);
    return taken;
  };
  const std::clock_t few = cpu_time(8'000);
  EXPECT_LT(cpu_time(64'000), 24 * few);
}

}  // namespace
}  // namespace penstock::server::checkpoint
