// Data that are refused: one error each, which names the place.
#include <ostream>
#include <string>

#include "common/status/error_details.h"
#include "common/status/key_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/data/dataset.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/data/dataset_case.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using RefusedDataTest = DatasetCase;

struct BadData {
  const char* name;
  std::string content;
  const char* message;

  friend void PrintTo(const BadData& bad, std::ostream* out) {
    *out << bad.message;
  }
};

class BadDataTest : public ::testing::TestWithParam<BadData> {};

TEST_P(BadDataTest, IsRefusedWithOneClearError) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Write(GetParam().name, GetParam().content);
  EXPECT_THAT(Dataset::Open({.train_path = path, .context = 4, .vocab = 256}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.train: " + path),
                             HasSubstr(GetParam().message))));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadDataTest,
    ::testing::Values(
        BadData{"t.txt", "", "is empty"},
        BadData{"t.txt", "abcd",
                "holds 4 tokens, too few for one sequence of 4 + 1"},
        BadData{"t.bin", "abc", "3 bytes are no whole number of 2-byte"},
        BadData{"t.bin", std::string("\x88\xd8\x34\x01\1\0\0\0", 8),
                "is a token file of llm.c (magic 20240520), not of nanoGPT: "
                "llm.c token files are not built yet"},
        BadData{"t.bin", std::string("\xa1\xd9\x34\x01\7\0\0\0", 8),
                "is a token file of llm.c (magic 20240801)"},
        BadData{"t.jsonl", "", "is empty"},
        BadData{"t.jsonl", "\n \t\r\n", "holds no line but blank ones"},
        BadData{"t.jsonl", std::string(kLine3) + "{\"input_ids\":[1,2]}\n",
                ":2: has 2 input_ids, but the first line ("},
        BadData{"t.jsonl", "{\"input_ids\":[1]}\n", ":1: has 1 input_ids"},
        BadData{"t.jsonl", "{\"input_ids\":[]}\n", ":1: has 0 input_ids"},
        BadData{"t.jsonl", "{\"input_ids\":[1,2,3,4,5,6]}\n",
                "predict 5 tokens each, more than model.context 4"},
        BadData{"t.jsonl", std::string(kLine3) + "\n{\"text\":\"abcdef\"}\n",
                ":3: has no input_ids, but the first line ("},
        BadData{"t.jsonl", std::string("{\"text\":\"abcdef\"}\n") + kLine3,
                ":2: has input_ids, but the first line ("},
        BadData{"t.jsonl", "{\"txt\":\"abcdef\"}\n",
                ":1: has neither input_ids nor the text field \"text\""},
        BadData{"t.jsonl", std::string(kLine3) + kLine3 + "{\"input_ids\":[",
                ":3: not valid JSON at byte 14"},
        BadData{"t.jsonl", "{\"text\":\"ab\"}\n",
                "holds 3 tokens, too few for one sequence of 4 + 1"}));

TEST_F(RefusedDataTest, AGivenSequenceLengthMustEqualTheTokenLines) {
  EXPECT_THAT(
      Dataset::Open(Options(dir_.Write("t.jsonl", kLine3), 3)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("lines of 3 input_ids predict 2 tokens each, but "
                         "data.sequence_length is 3")));
}

TEST_F(RefusedDataTest, ASequenceLongerThanTheContextIsRefused) {
  Dataset::Options options = Options(dir_.Write("t.txt", SomeText(99)), 8);
  options.context = 7;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("8 tokens each, more than model.context 7")));
}

TEST_F(RefusedDataTest, FoldersThatCannotBeMeantAreRefused) {
  const auto open = [&](absl::string_view folder, Format format) {
    return Dataset::Open({.train_path = dir_.Path(folder),
                          .format = format,
                          .context = 4})
        .status();
  };
  dir_.Write("mixed/a.txt", "abcdefgh");
  dir_.Write("mixed/a.jsonl", kLine3);
  dir_.Write("none/a.csv", "abcdefgh");
  dir_.Write("empty/a.txt", "");
  EXPECT_THAT(open("mixed", Format::kAuto),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("say which with data.format")));
  EXPECT_OK(open("mixed", Format::kText));
  EXPECT_OK(open("mixed", Format::kJsonl));
  EXPECT_THAT(open("mixed", Format::kNanogpt),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes one file")));
  EXPECT_THAT(open("none", Format::kAuto),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a folder without .txt files")));
  dir_.Write("lines/a.jsonl", kLine3);
  for (const Format format : {Format::kText, Format::kAuto}) {
    EXPECT_THAT(open("lines", format),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("a folder without .txt files; for its "
                                   ".jsonl files say data.format: jsonl")));
  }
  dir_.Write("named.jsonl/a.jsonl", kLine3);
  EXPECT_OK(open("named.jsonl", Format::kAuto));
  EXPECT_THAT(open("empty", Format::kAuto),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("whose files are all empty")));
  const absl::Status missing = open("missing", Format::kAuto);
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("No such file")));
  EXPECT_EQ(common::status::Reason(missing), "INPUT_NOT_VISIBLE");
}

TEST_F(RefusedDataTest, VocabularyTooSmallNamesPlaceIdAndVocabulary) {
  Dataset::Options options = Options(dir_.Write("t.txt", "abc\xc3\xa9"), 2);
  options.vocab = 128;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.train: vocabulary too small for the data: " +
                           options.train_path +
                           ": byte 3 is token id 195, but model.vocab is 128 "
                           "(ids 0 to 127)"));
  options.train_path = dir_.Write("t.bin", std::string("\1\0\0\1\2\0", 6));
  options.vocab = 256;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("t.bin: byte 2 is token id 256, but")));
  options.vocab = 257;
  EXPECT_OK(Dataset::Open(options));
  options.train_path = dir_.Write(
      "t.jsonl", "\n{\"input_ids\":[1,2,3]}\n{\"input_ids\":[1,2,300]}\n");
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("t.jsonl:3: input_ids[2] is token id 300")));
  options.train_path = dir_.Write(
      "l.jsonl", "{\"input_ids\":[1,2,3],\"labels\":[-100,257,3]}\n");
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("l.jsonl:1: labels[1] is token id 257")));
  options.vocab = kNoVocabulary;
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
  EXPECT_EQ(dataset->train_report().largest_id, 257);
}

TEST_F(RefusedDataTest, AShareThatLeavesNothingIsRefused) {
  Dataset::Options options = Options(dir_.Write("t.txt", SomeText(101)), 4);
  options.validation_millionths = 39999;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "data.validation: a share of 0.039999 of 25 sequences "
                       "leaves none for validation"));
  options.validation_millionths = 1000000;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("leaves none for training")));
}

TEST_F(RefusedDataTest, ErrorsCarryTheirKey) {
  const std::string good = dir_.Write("t.txt", "0123456789");
  const auto key = [](const Dataset::Options& options) {
    return common::status::KeyPath(Dataset::Open(options).status());
  };
  EXPECT_EQ(key({.train_path = dir_.Path("missing"), .context = 4}),
            "data.train");
  EXPECT_EQ(key({.train_path = good,
                 .validation_path = dir_.Path("missing"),
                 .context = 4}),
            "data.validation");
  EXPECT_EQ(key({.train_path = good, .validation_millionths = 1, .context = 4}),
            "data.validation");
}

TEST_F(RefusedDataTest, ErrorsQuoteLittleOfAFile) {
  const std::string secret(5000, 'S');
  for (const std::string& content :
       {secret, "{\"" + secret + "\":1,\"" + secret + "\"}",
        "{\"text\":" + secret + "}"}) {
    const auto opened = Dataset::Open(
        {.train_path = dir_.Write("t.jsonl", content), .context = 4});
    EXPECT_THAT(std::string(opened.status().message()),
                Not(HasSubstr(std::string(65, 'S'))));
  }
}

}  // namespace
}  // namespace penstock::server::data
