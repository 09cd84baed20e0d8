// Model folders, read: single file and shards, old and bare names, f16 and
// bf16, and their digests.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/log/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/model_folder_reader.h"
#include "server/checkpoint/model_index.h"
#include "server/checkpoint/safetensors_file.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/checkpoint/model_folder_case.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ModelFolderTest = ModelFolderCase;

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

}  // namespace
}  // namespace penstock::server::checkpoint
