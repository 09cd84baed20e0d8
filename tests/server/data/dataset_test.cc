#include "server/data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/data/dataset_case.h"

namespace penstock::server::data {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Sequence {
  std::vector<int32_t> ids;
  std::vector<int32_t> labels;
  bool operator==(const Sequence&) const = default;
};

enum class Part { kTraining, kValidation };

Sequence Read(const Dataset& dataset, Part part, int64_t index) {
  Sequence s{std::vector<int32_t>(dataset.sequence_length()),
             std::vector<int32_t>(dataset.sequence_length())};
  const SequenceOut out{absl::MakeSpan(s.ids), absl::MakeSpan(s.labels)};
  CHECK_OK(part == Part::kTraining ? dataset.ReadTraining(index, out)
                                   : dataset.ReadValidation(index, out));
  return s;
}

std::vector<Sequence> ReadAll(const Dataset& dataset, Part part) {
  std::vector<Sequence> all;
  const int64_t count = part == Part::kTraining
                            ? dataset.train_sequences()
                            : dataset.validation_sequences();
  for (int64_t i = 0; i < count; ++i) all.push_back(Read(dataset, part, i));
  return all;
}

// The rule of docs/numerics.md by hand: cut windows of length + 1 until
// one does not fit any more.
std::vector<Sequence> Windows(const std::vector<int32_t>& tokens,
                              int64_t length) {
  std::vector<Sequence> windows;
  for (size_t at = 0; at + length + 1 <= tokens.size(); at += length) {
    const auto begin = tokens.begin() + at;
    windows.push_back(
        {{begin, begin + length}, {begin + 1, begin + length + 1}});
  }
  return windows;
}

std::vector<int32_t> Bytes(absl::string_view text) {
  std::vector<int32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
  return tokens;
}

using DatasetTest = DatasetCase;

TEST_F(DatasetTest, TextWindowsFollowTheRuleForEverySizeAndLength) {
  for (int64_t bytes = 2; bytes <= 40; ++bytes) {
    const std::string text = SomeText(bytes);
    const std::string path = dir_.Write("t.txt", text);
    for (int64_t length = 1; length < bytes; ++length) {
      ASSERT_OK_AND_ASSIGN(const auto dataset,
                           Dataset::Open(Options(path, length)));
      ASSERT_EQ(ReadAll(*dataset, Part::kTraining),
                Windows(Bytes(text), length))
          << bytes << " bytes, length " << length;
      ASSERT_EQ(dataset->train_report().tokens, bytes);
    }
  }
}

TEST_F(DatasetTest, TheShareTakesTheLastWindowsAndTrainingNeverReadsThem) {
  const std::string text = SomeText(101);
  const auto windows = Windows(Bytes(text), 4);  // 25.
  for (const int64_t millionths :
       {40000, 50000, 79999, 80000, 500000, 960000}) {
    Dataset::Options options = Options(dir_.Write("t.txt", text), 4);
    options.validation_millionths = millionths;
    ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
    const int64_t held_out = 25 * millionths / 1000000;
    EXPECT_EQ(ReadAll(*dataset, Part::kTraining),
              std::vector<Sequence>(windows.begin(), windows.end() - held_out));
    EXPECT_EQ(ReadAll(*dataset, Part::kValidation),
              std::vector<Sequence>(windows.end() - held_out, windows.end()));
  }
}

TEST_F(DatasetTest, ValidationMayBeAPathOfItsOwn) {
  const std::string held_out = SomeText(33);
  Dataset::Options options = Options(dir_.Write("t.txt", SomeText(50)), 8);
  options.validation_path = dir_.Write("v.txt", held_out);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
  EXPECT_EQ(dataset->train_sequences(), 6);
  EXPECT_EQ(ReadAll(*dataset, Part::kValidation), Windows(Bytes(held_out), 8));
  options.validation_path = dir_.Path("missing.txt");
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("data.validation: ")));
}

TEST_F(DatasetTest, AFolderIsItsTextFilesInNameOrder) {
  dir_.Write("d/b.txt", "3456");
  dir_.Write("d/a.txt", "012");
  dir_.Write("d/c.txt", "");
  dir_.Write("d/d.txt", "789");
  dir_.Write("d/README", "not data");
  dir_.Write("d/.hidden.txt", "not data");
  dir_.Write("d/sub/e.txt", "not data");
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Dataset::Open(Options(dir_.Path("d"), 3)));
  EXPECT_EQ(ReadAll(*dataset, Part::kTraining),
            Windows(Bytes("0123456789"), 3));
  EXPECT_THAT(dataset->train_report().files,
              ElementsAre(ListedFile{dir_.Path("d/a.txt"), 3},
                          ListedFile{dir_.Path("d/b.txt"), 4},
                          ListedFile{dir_.Path("d/c.txt"), 0},
                          ListedFile{dir_.Path("d/d.txt"), 3}));
}

TEST_F(DatasetTest, ManyFilesNeedNoDescriptorEach) {
  std::string all;
  for (int i = 100; i < 300; ++i) {
    const std::string text = SomeText(i % 17);
    dir_.Write("d/" + std::to_string(i) + ".txt", text);
    all += text;
  }
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Dataset::Open(Options(dir_.Path("d"), 50)));
  EXPECT_EQ(ReadAll(*dataset, Part::kTraining), Windows(Bytes(all), 50));
}

// The coordinator resolves `auto` by the file's name, so that a stage is told
// nanogpt for every .bin.
TEST_F(DatasetTest, LlmcTokensAreNoNanogptTokensThoughTheFormatIsGiven) {
  Dataset::Options options =
      Options(dir_.Write("train.bin", std::string("\x88\xd8\x34\x01", 4) +
                                          std::string(1020, '\1')),
              7);
  options.format = Format::kNanogpt;
  EXPECT_THAT(Dataset::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a token file of llm.c")));
}

TEST_F(DatasetTest, NanogptTokensAreLittleEndianU16) {
  std::vector<int32_t> tokens;
  std::string bytes;
  for (int i = 0; i < 53; ++i) {
    tokens.push_back((i * 2777) % 65536);
    bytes += static_cast<char>(tokens.back() & 0xff);
    bytes += static_cast<char>(tokens.back() >> 8);
  }
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Dataset::Open(Options(dir_.Write("train.bin", bytes), 7)));
  EXPECT_EQ(ReadAll(*dataset, Part::kTraining), Windows(tokens, 7));
  EXPECT_EQ(dataset->train_report().format, Format::kNanogpt);
  EXPECT_EQ(dataset->train_report().largest_id,
            *std::max_element(tokens.begin(), tokens.end()));
}

TEST_F(DatasetTest, TextLinesAreJoinedWithANewlineAfterEach) {
  dir_.Write("d/a.jsonl",
             "{\"text\":\"ab\"}\n\n  \n{\"text\":\"\",\"id\":7}\r\n"
             "{\"text\":\"caf\\u00e9 and more\"}");
  dir_.Write("d/b.jsonl", "{\"labels\":1,\"text\":\"x\\n\"}\n");
  const std::string joined = "ab\n\ncaf\xc3\xa9 and more\nx\n\n";
  for (int64_t length = 1; length <= 20; ++length) {
    Dataset::Options options = Options(dir_.Path("d"), length);
    options.format = Format::kJsonl;
    ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
    EXPECT_EQ(ReadAll(*dataset, Part::kTraining),
              Windows(Bytes(joined), length));
    EXPECT_EQ(dataset->train_report().line_tokens, 0);
  }
}

TEST_F(DatasetTest, ATokenLineIsASequenceWithLabelsOnePositionOn) {
  const std::string path =
      dir_.Write("t.jsonl",
                 "{\"input_ids\":[1,2,3],\"labels\":[-100,-100,9]}\n"
                 "{\"input_ids\":[4,5,6]}\n"
                 "{\"input_ids\":[7,8,9],\"labels\":[7,-100,9]}\n");
  Dataset::Options options{.train_path = path, .context = 2, .vocab = 10};
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
  EXPECT_EQ(dataset->sequence_length(), 2);
  EXPECT_THAT(ReadAll(*dataset, Part::kTraining),
              ElementsAre(Sequence{{1, 2}, {-100, 9}}, Sequence{{4, 5}, {5, 6}},
                          Sequence{{7, 8}, {-100, 9}}));
  EXPECT_EQ(dataset->train_report().line_tokens, 3);
  EXPECT_EQ(dataset->train_report().tokens, 9);
  EXPECT_EQ(dataset->train_report().largest_id, 9);
  options.sequence_length = 2;
  EXPECT_OK(Dataset::Open(options));
}

TEST_F(DatasetTest, TheFirstLineWithAMaskIsReported) {
  const std::string all = "{\"input_ids\":[1,2],\"attention_mask\":[1,1]}\n";
  const std::string some = "{\"input_ids\":[1,2],\"attention_mask\":[0,1]}\n";
  const std::string path = dir_.Write("m.jsonl", all + some + all + some);
  Dataset::Options options{.train_path = path,
                           .validation_path = dir_.Write("v.jsonl", all),
                           .context = 1,
                           .vocab = 3};
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(options));
  EXPECT_EQ(dataset->train_report().masked_line, path + ":2");
  EXPECT_EQ(dataset->validation_report()->masked_line, "");
}

TEST_F(DatasetTest, HalfASequenceMayBeAskedFor) {
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Dataset::Open(Options(dir_.Write("t", "abcdef"), 5)));
  std::vector<int32_t> half(5);
  ASSERT_OK(dataset->ReadTraining(0, {.ids = absl::MakeSpan(half)}));
  EXPECT_EQ(half, Bytes("abcde"));
  ASSERT_OK(dataset->ReadTraining(0, {.labels = absl::MakeSpan(half)}));
  EXPECT_EQ(half, Bytes("bcdef"));
}

TEST_F(DatasetTest, SequenceLengthDefaultsToTheContextWithoutTokenLines) {
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      Dataset::Open(
          {.train_path = dir_.Write("t.txt", SomeText(100)), .context = 12}));
  EXPECT_EQ(dataset->sequence_length(), 12);
}

TEST_F(DatasetTest, LinesOfTextHaveTheLengthThatIsGivenForThem) {
  Dataset::Options options = {
      .train_path = dir_.Write("t.jsonl", "{\"text\":\"0123456789\"}\n"),
      .text_sequence_length = 5,
      .context = 8};
  ASSERT_OK_AND_ASSIGN(const auto texts, Dataset::Open(options));
  EXPECT_EQ(texts->sequence_length(), 5);
  EXPECT_EQ(texts->train_sequences(), 2);
  // Lines of tokens decide themselves.
  options.train_path = dir_.Write("u.jsonl", kLine3);
  ASSERT_OK_AND_ASSIGN(const auto tokens, Dataset::Open(options));
  EXPECT_EQ(tokens->sequence_length(), 2);
}

TEST_F(DatasetTest, FormatGoesByTheNameUnlessItIsGiven) {
  const std::string line = "{\"input_ids\":[1,2,3]}\n";
  Dataset::Options options = Options(dir_.Write("t.jsonl", line), 2);
  options.format = Format::kText;
  ASSERT_OK_AND_ASSIGN(const auto text, Dataset::Open(options));
  EXPECT_EQ(text->train_report().tokens, static_cast<int64_t>(line.size()));
  options.train_path = dir_.Write("t.tokens", line);
  options.format = Format::kJsonl;
  ASSERT_OK_AND_ASSIGN(const auto lines, Dataset::Open(options));
  EXPECT_EQ(lines->train_sequences(), 1);
}

TEST_F(DatasetTest, FingerprintIsOfTheContentAndHowItIsCut) {
  Dataset::Options options = Options(dir_.Write("x/t.txt", SomeText(100)), 8);
  ASSERT_OK_AND_ASSIGN(const auto first, Dataset::Open(options));
  const std::string fingerprint = first->train_report().fingerprint;
  EXPECT_EQ(fingerprint.size(), 64u);
  const auto of = [](const Dataset::Options& changed) {
    return (*Dataset::Open(changed))->train_report().fingerprint;
  };

  Dataset::Options elsewhere = options;
  elsewhere.train_path = dir_.Write("y/u.txt", SomeText(100));
  EXPECT_EQ(of(elsewhere), fingerprint);

  std::string changed = SomeText(100);
  changed[99] ^= 1;  // Not even part of a window.
  elsewhere.train_path = dir_.Write("y/u.txt", changed);
  EXPECT_NE(of(elsewhere), fingerprint);

  Dataset::Options longer = options;
  longer.sequence_length = 9;
  EXPECT_NE(of(longer), fingerprint);

  Dataset::Options binary = options;
  binary.format = Format::kNanogpt;
  EXPECT_NE(of(binary), fingerprint);

  Dataset::Options split = options;
  split.validation_millionths = 500000;
  EXPECT_NE(of(split), fingerprint);
  ASSERT_OK_AND_ASSIGN(const auto both, Dataset::Open(split));
  EXPECT_NE(both->validation_report()->fingerprint,
            both->train_report().fingerprint);

  // The same bytes cut into other files.
  dir_.Write("z/1.txt", SomeText(100).substr(0, 40));
  dir_.Write("z/2.txt", SomeText(100).substr(40));
  elsewhere.train_path = dir_.Path("z");
  EXPECT_NE(of(elsewhere), fingerprint);
}

TEST_F(DatasetTest, EveryPieceThatIsReadIsToldAbout) {
  for (const char* name : {"t.txt", "t.jsonl"}) {
    // 3 pieces of 1 MiB, the last one short.
    const std::string line = "{\"text\":\"" + std::string(1013, 'x') + "\"}\n";
    std::string content;
    while (content.size() < (5 << 19)) content += line;
    int pieces = 0;
    ASSERT_OK(Dataset::Open({.train_path = dir_.Write(name, content),
                             .context = 4,
                             .piece_done =
                                 [&pieces] {
                                   ++pieces;
                                   return absl::OkStatus();
                                 }})
                  .status());
    EXPECT_EQ(pieces, 3) << name;
  }
}

TEST_F(DatasetTest, WhoIsToldOfThePiecesMayEndTheReading) {
  for (const char* name : {"t.txt", "t.jsonl"}) {
    const std::string line = "{\"text\":\"" + std::string(1013, 'x') + "\"}\n";
    std::string content;
    while (content.size() < (5 << 19)) content += line;
    int pieces = 0;
    EXPECT_THAT(Dataset::Open({.train_path = dir_.Write(name, content),
                               .context = 4,
                               .piece_done =
                                   [&pieces] {
                                     ++pieces;
                                     return absl::CancelledError("enough");
                                   }}),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
    EXPECT_EQ(pieces, 1) << name;
  }
}

TEST_F(DatasetTest, ALineThatChangesDuringTheJobIsDataLoss) {
  const std::string path = dir_.Write("t.jsonl", kLine3);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Dataset::Open(Options(path, 2)));
  // A change that neither the file's size nor its time shows.
  const auto time = std::filesystem::last_write_time(path);
  dir_.Write("t.jsonl", "{\"input_ids\":[1,2]}  \n");
  std::filesystem::last_write_time(path, time);
  std::vector<int32_t> ids(2);
  EXPECT_THAT(dataset->ReadTraining(0, {.ids = absl::MakeSpan(ids)}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("the line at byte 0 was changed")));
}

}  // namespace
}  // namespace penstock::server::data
