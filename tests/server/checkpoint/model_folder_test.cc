// Model folders, written and read: single file and shards, old and bare names,
// f16 and bf16, and one clear error for each way in which a folder is wrong.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/file/file.h"
#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/model_folder_reader.h"
#include "server/checkpoint/model_index.h"
#include "server/checkpoint/safetensors_file.h"
#include "server/checkpoint/safetensors_writer.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kSuffix = ".tmp-1-1-test";

// A tensor of a file that a test writes by hand.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};

std::string F32Data(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

std::string HalfData(const std::vector<uint16_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(uint16_t));
}

class ModelFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = {.folder = folder_,
                .expected = {{"transformer.wte.weight", {3, 2}},
                             {"transformer.h.0.ln_1.weight", {2}}},
                .prefix = "transformer.",
                .tied_head_source = "transformer.wte.weight"};
  }

  std::string Path(absl::string_view name) const {
    return absl::StrCat(folder_, "/", name);
  }

  void WriteText(absl::string_view name, absl::string_view text) {
    ASSERT_OK(
        common::file::ReplaceFile({.path = Path(name), .contents = text}));
  }

  void WriteRaw(absl::string_view name, const std::vector<RawTensor>& tensors) {
    std::string json = "{", data;
    for (const RawTensor& tensor : tensors) {
      absl::StrAppend(&json, json.size() > 1 ? "," : "", "\"", tensor.name,
                      "\":{\"dtype\":\"", tensor.dtype, "\",\"shape\":[");
      for (size_t i = 0; i < tensor.shape.size(); ++i) {
        absl::StrAppend(&json, i > 0 ? "," : "", tensor.shape[i]);
      }
      absl::StrAppend(&json, "],\"data_offsets\":[", data.size(), ",",
                      data.size() + tensor.data.size(), "]}");
      data += tensor.data;
    }
    json += "}";
    std::string length(8, '\0');
    const uint64_t bytes = json.size();
    std::memcpy(length.data(), &bytes, 8);
    WriteText(name, length + json + data);
  }

  std::vector<float> ReadAll(const ModelFolderReader& reader,
                             const std::string& name, size_t elements) {
    std::vector<float> values(elements);
    EXPECT_OK(reader.Read(name, absl::MakeSpan(values)));
    return values;
  }

  const RawTensor embedding_ = {
      "transformer.wte.weight", "F32", {3, 2}, F32Data({1, 2, 3, 4, 5, 6})};
  const RawTensor norm_ = {
      "transformer.h.0.ln_1.weight", "F32", {2}, F32Data({7, 8})};
  const tests::fakes::TempDir dir_;
  const std::string& folder_ = dir_.path();
  ModelFolderReader::Options options_;
};

TEST_F(ModelFolderTest, ReadsOneFile) {
  WriteRaw(kModelFile, {norm_, embedding_});
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(ReadAll(reader, "transformer.wte.weight", 6),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ReadAll(reader, "transformer.h.0.ln_1.weight", 2),
              ElementsAre(7, 8));
}

TEST_F(ModelFolderTest, ReadsShards) {
  WriteRaw("model-00001-of-00002.safetensors", {embedding_});
  WriteRaw("model-00002-of-00002.safetensors", {norm_});
  WriteText(kModelIndexFile, R"({
  "metadata": {"total_size": 32},
  "weight_map": {
    "transformer.h.0.ln_1.weight": "model-00002-of-00002.safetensors",
    "transformer.wte.weight": "model-00001-of-00002.safetensors"
  }
})");
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(ReadAll(reader, "transformer.h.0.ln_1.weight", 2),
              ElementsAre(7, 8));
  EXPECT_THAT(reader.paths(),
              ElementsAre(Path("model-00001-of-00002.safetensors"),
                          Path("model-00002-of-00002.safetensors")));
}

// A header may name a million tensors.
TEST_F(ModelFolderTest,
       TensorsOfAnIndexAreFoundInTimeThatGrowsWithTheirNumber) {
  const auto cpu_time = [this](int count) {
    std::vector<RawTensor> tensors = {norm_, embedding_};
    std::string index;
    for (int i = 0; i < count; ++i) {
      tensors.push_back({absl::StrCat("h.", i, ".attn.bias"), "U8", {0}, ""});
      absl::StrAppend(&index, index.empty() ? "" : ",", "\"",
                      tensors.back().name, "\":\"a.safetensors\"");
    }
    WriteRaw("a.safetensors", tensors);
    WriteText(kModelIndexFile, absl::StrCat("{\"weight_map\":{", index, "}}"));
    const std::clock_t start = std::clock();
    EXPECT_OK(ModelFolderReader::Open(options_).status());
    return std::clock() - start;
  };
  const std::clock_t few = cpu_time(8'000);
  EXPECT_LT(cpu_time(64'000), 24 * few);
}

TEST_F(ModelFolderTest, ConvertsHalfPrecisionToF32) {
  // 1, -2, 2^-24 (the smallest denormal), 65504, 2^-14, 0.333...
  WriteRaw(kModelFile,
           {{"transformer.wte.weight",
             "F16",
             {3, 2},
             HalfData({0x3C00, 0xC000, 0x0001, 0x7BFF, 0x0400, 0x3555})},
            {"transformer.h.0.ln_1.weight",
             "BF16",
             {2},
             HalfData({0x3F80, 0xC2F7})}});
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(
      ReadAll(reader, "transformer.wte.weight", 6),
      ElementsAre(1.0f, -2.0f, 0x1p-24f, 65504.0f, 0x1p-14f, 0.333251953125f));
  EXPECT_THAT(ReadAll(reader, "transformer.h.0.ln_1.weight", 2),
              ElementsAre(1.0f, -123.5f));
}

TEST_F(ModelFolderTest, ALargeTensorIsReadInPiecesUntilItIsEnough) {
  constexpr size_t kElements = SafetensorsFile::kPieceElements + 6;
  options_.expected[0].shape = {kElements / 2, 2};
  std::vector<float> values(kElements);
  std::vector<uint16_t> bf16(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    bf16[i] = 0x3F80 + i % 512;
    values[i] = std::bit_cast<float>(uint32_t{bf16[i]} << 16);
  }
  for (const RawTensor& tensor : {RawTensor{"", "F32", {}, F32Data(values)},
                                  RawTensor{"", "BF16", {}, HalfData(bf16)}}) {
    WriteRaw(kModelFile,
             {{embedding_.name, tensor.dtype, {kElements / 2, 2}, tensor.data},
              norm_});
    ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
    EXPECT_TRUE(ReadAll(reader, embedding_.name, kElements) == values);
    int pieces = 0;
    const auto read = [&](const absl::Status& each) {
      pieces = 0;
      std::vector<float> into(kElements);
      return reader.Read(embedding_.name, absl::MakeSpan(into), [&] {
        ++pieces;
        return each;
      });
    };
    EXPECT_OK(read(absl::OkStatus()));
    EXPECT_EQ(pieces, 2);
    EXPECT_THAT(read(absl::CancelledError("enough")),
                StatusIs(absl::StatusCode::kCancelled, "enough"));
    EXPECT_EQ(pieces, 1);
  }
}

TEST_F(ModelFolderTest, RefusesValuesThatNoTrainingCanStartFrom) {
  const RawTensor norm = {"ln_1.weight", "F32", {2}, F32Data({7, -INFINITY})};
  const RawTensor half = {
      "wte.weight", "BF16", {3, 2}, HalfData({0, 0, 0, 0x7FC0, 0, 0x7F80})};
  WriteRaw(kModelFile,
           {{"h.0." + norm.name, norm.dtype, norm.shape, norm.data}, half});
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  std::vector<float> values(6);
  EXPECT_THAT(
      reader.Read("transformer.wte.weight", absl::MakeSpan(values)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(Path(kModelFile)),
                     HasSubstr("tensor \"wte.weight\" holds nan at element "
                               "3 of 6"))));
  EXPECT_THAT(
      reader.Read("transformer.h.0.ln_1.weight",
                  absl::MakeSpan(values).subspan(0, 2)),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("tensor \"h.0.ln_1.weight\" holds -inf at element 1")));
}

TEST_F(ModelFolderTest, AcceptsBareNamesAndIgnoresWhatIsNoParameter) {
  RawTensor bare_embedding = embedding_, bare_norm = norm_;
  bare_embedding.name = "wte.weight";
  bare_norm.name = "h.0.ln_1.weight";
  WriteRaw(kModelFile, {bare_embedding,
                        bare_norm,
                        {"h.0.attn.bias", "U8", {2}, "xx"},
                        {"h.0.attn.masked_bias", "F32", {}, F32Data({-1e4})},
                        {"h.0.rotary_emb.inv_freq", "F32", {0}, ""}});
  WriteText("pytorch_model.bin", "not looked at");
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(ReadAll(reader, "transformer.wte.weight", 6),
              ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ModelFolderTest, AcceptsATiedHeadThatEqualsTheEmbedding) {
  RawTensor head = embedding_;
  head.name = "lm_head.weight";
  WriteRaw(kModelFile, {embedding_, norm_, head});
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_OK(reader.CheckTiedHead());
}

TEST_F(ModelFolderTest, RefusesATiedHeadThatDiffers) {
  RawTensor head = embedding_;
  head.name = "lm_head.weight";
  head.data = F32Data({1, 2, 3, 4, 5, 7});
  WriteRaw(kModelFile, {embedding_, norm_, head});
  ASSERT_OK_AND_ASSIGN(const auto reader, ModelFolderReader::Open(options_));
  EXPECT_THAT(reader.CheckTiedHead(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("lm_head.weight"),
                             HasSubstr("transformer.wte.weight"))));
}

TEST_F(ModelFolderTest, ATiedHeadIsComparedPieceByPiece) {
  constexpr size_t kElements = 2 * SafetensorsFile::kPieceElements + 6;
  options_.expected[0].shape = {kElements / 2, 2};
  const RawTensor embedding = {embedding_.name,
                               "BF16",
                               {kElements / 2, 2},
                               HalfData(std::vector<uint16_t>(kElements))};
  const auto check = [&](const std::vector<float>& values, int& pieces) {
    WriteRaw(kModelFile,
             {embedding,
              norm_,
              {"lm_head.weight", "F32", embedding.shape, F32Data(values)}});
    const auto reader = ModelFolderReader::Open(options_);
    EXPECT_OK(reader.status());
    pieces = 0;
    return reader->CheckTiedHead([&pieces] {
      ++pieces;
      return absl::OkStatus();
    });
  };
  const auto differs = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("lm_head.weight\" differs from"));
  int pieces = 0;
  std::vector<float> values(kElements);
  EXPECT_OK(check(values, pieces));
  EXPECT_EQ(pieces, 6);
  values.back() = 1;
  EXPECT_THAT(check(values, pieces), differs);
  EXPECT_EQ(pieces, 6);
  // No more is held, or read, than it takes.
  values.front() = 1;
  EXPECT_THAT(check(values, pieces), differs);
  EXPECT_EQ(pieces, 2);
}

TEST_F(ModelFolderTest, RefusesAHeadWhereTheModelIsUntiedAndNotExpected) {
  RawTensor head = embedding_;
  head.name = "lm_head.weight";
  WriteRaw(kModelFile, {embedding_, norm_, head});
  options_.tied_head_source.clear();
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lm_head.weight\" is not used")));
}

TEST_F(ModelFolderTest, NamesFileAndTensorOfEveryFault) {
  const auto open = [&](const std::vector<RawTensor>& tensors) {
    WriteRaw(kModelFile, tensors);
    return ModelFolderReader::Open(options_).status();
  };
  const auto invalid = [&](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr(Path(kModelFile)), HasSubstr(text)));
  };
  EXPECT_THAT(open({embedding_}),
              invalid("transformer.h.0.ln_1.weight of shape [2] is missing"));
  EXPECT_THAT(
      open({embedding_, norm_, {"extra.weight", "F32", {1}, F32Data({1})}}),
      invalid("tensor \"extra.weight\" is not used"));
  EXPECT_THAT(
      open({embedding_,
            {"transformer.h.0.ln_1.weight", "F32", {3}, F32Data({1, 2, 3})}}),
      invalid("h.0.ln_1.weight\" has shape [3], the model needs [2]"));
  EXPECT_THAT(
      open({embedding_,
            {"transformer.h.0.ln_1.weight", "I32", {2}, F32Data({1, 2})}}),
      invalid("has dtype I32, must be F32, F16 or BF16"));
  EXPECT_THAT(
      open({embedding_, norm_, {"h.0.ln_1.weight", "F32", {2}, norm_.data}}),
      invalid("is there twice"));
}

TEST_F(ModelFolderTest, RefusesATruncatedFileAtEveryLength) {
  WriteRaw(kModelFile, {embedding_, norm_});
  ASSERT_OK_AND_ASSIGN(const std::string whole,
                       common::file::ReadFile(Path(kModelFile), 1 << 20));
  for (size_t size = 0; size < whole.size(); ++size) {
    WriteText(kModelFile, whole.substr(0, size));
    EXPECT_THAT(ModelFolderReader::Open(options_).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(Path(kModelFile))))
        << size;
  }
}

TEST_F(ModelFolderTest, SaysWhenAFolderHasNoSafetensors) {
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_)));
}

TEST_F(ModelFolderTest, RefusesAnIndexThatPointsOutOfTheFolder) {
  for (const char* file : {"../x.safetensors", "/etc/x.safetensors",
                           ".safetensors", "pytorch_model.bin", ""}) {
    WriteText(kModelIndexFile,
              absl::StrCat("{\"weight_map\": {\"a\": \"", file, "\"}}"));
    EXPECT_THAT(
        ModelFolderReader::Open(options_).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(Path(kModelIndexFile)), HasSubstr("\"a\""))))
        << file;
  }
}

TEST_F(ModelFolderTest, RefusesAnIndexThatItsShardsDoNotBearOut) {
  WriteRaw(kModelFile, {embedding_, norm_});
  std::filesystem::rename(Path(kModelFile),
                          Path("model-00001-of-00002.safetensors"));
  WriteText(kModelIndexFile,
            R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensor \"a\" is missing")));
  WriteText(kModelIndexFile,
            R"({"weight_map": {"a": "model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("model-00002-of-00002.safetensors")));
  for (const char* text : {"", "[]", "{}", R"({"weight_map": []})",
                           R"({"weight_map": {"a": 1}})"}) {
    WriteText(kModelIndexFile, text);
    EXPECT_THAT(ModelFolderReader::Open(options_).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST_F(ModelFolderTest, TheDigestTellsFoldersApartByNamesSizesAndHeaders) {
  const auto digest = [this] {
    const auto reader = ModelFolderReader::Open(options_);
    CHECK_OK(reader.status());
    const auto digest = reader->Digest();
    CHECK_OK(digest.status());
    return *digest;
  };
  WriteRaw(kModelFile, {embedding_, norm_});
  const std::string first = digest();
  EXPECT_EQ(first.size(), 64);
  WriteRaw(kModelFile, {embedding_, norm_});
  EXPECT_EQ(digest(), first);  // Of no path, time or inode.
  WriteRaw(kModelFile, {norm_, embedding_});
  const std::string reordered = digest();
  EXPECT_NE(reordered, first);
  // The same file as a shard.
  std::filesystem::rename(Path(kModelFile),
                          Path("model-00001-of-00001.safetensors"));
  WriteText(kModelIndexFile,
            absl::StrCat("{\"weight_map\": {\"", norm_.name,
                         "\": \"model-00001-of-00001.safetensors\"}}"));
  EXPECT_NE(digest(), reordered);
}

TEST_F(ModelFolderTest, DigestSamplesEachTensorsBytes) {
  // The first tensor is read whole, the second in part.
  constexpr int64_t kRows = 10'000;
  options_.expected[0].shape = {kRows, 2};
  const std::vector<float> small = {7, 8};
  const std::vector<float> large(2 * kRows, 0.5f);
  struct Seen {
    std::string digest;
    int tensors = 0;
  };
  const auto seen = [&](const std::vector<float>& norm,
                        const std::vector<float>& embedding) {
    WriteRaw(kModelFile,
             {{norm_.name, "F32", {2}, F32Data(norm)},
              {embedding_.name, "F32", {kRows, 2}, F32Data(embedding)}});
    const auto reader = ModelFolderReader::Open(options_);
    CHECK_OK(reader.status());
    Seen seen;
    const auto digest = reader->Digest([&seen] {
      ++seen.tensors;
      return absl::OkStatus();
    });
    CHECK_OK(digest.status());
    seen.digest = *digest;
    return seen;
  };
  const Seen first = seen(small, large);
  EXPECT_EQ(first.tensors, 2);
  EXPECT_EQ(seen(small, large).digest, first.digest);
  EXPECT_NE(seen({7, 9}, large).digest, first.digest);
  for (const int64_t changed : {int64_t{0}, kRows, 2 * kRows - 1}) {
    std::vector<float> other = large;
    other[changed] = 0.25f;
    EXPECT_NE(seen(small, other).digest, first.digest) << changed;
  }
  // What it is at the price of.
  std::vector<float> other = large;
  other[kRows / 2] = 0.25f;
  EXPECT_EQ(seen(small, other).digest, first.digest);
}

TEST_F(ModelFolderTest, AFolderInPlaceOfTheFileIsAnError) {
  std::filesystem::create_directory(Path(kModelFile));
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a folder, not a file")));
}

TEST_F(ModelFolderTest, WhatIsWrittenIsReadBack) {
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

TEST_F(ModelFolderTest, AnUnfinishedFileNeverGetsItsName) {
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

TEST_F(ModelFolderTest, WritingIntoAMissingFolderNamesThePath) {
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
