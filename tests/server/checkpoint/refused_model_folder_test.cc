// One clear error for each way in which a model folder is wrong.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/checkpoint/model_folder_reader.h"
#include "server/checkpoint/model_index.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/checkpoint/model_folder_case.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using RefusedModelFolderTest = ModelFolderCase;

TEST_F(RefusedModelFolderTest, RefusesValuesThatNoTrainingCanStartFrom) {
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

TEST_F(RefusedModelFolderTest, RefusesATiedHeadThatDiffers) {
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

TEST_F(RefusedModelFolderTest,
       RefusesAHeadWhereTheModelIsUntiedAndNotExpected) {
  RawTensor head = embedding_;
  head.name = "lm_head.weight";
  WriteRaw(kModelFile, {embedding_, norm_, head});
  options_.tied_head_source.clear();
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lm_head.weight\" is not used")));
}

TEST_F(RefusedModelFolderTest, NamesFileAndTensorOfEveryFault) {
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

TEST_F(RefusedModelFolderTest, RefusesATruncatedFileAtEveryLength) {
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

TEST_F(RefusedModelFolderTest, SaysWhenAFolderHasNoSafetensors) {
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_)));
}

TEST_F(RefusedModelFolderTest, RefusesAnIndexThatPointsOutOfTheFolder) {
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

TEST_F(RefusedModelFolderTest, RefusesAnIndexThatItsShardsDoNotBearOut) {
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

TEST_F(RefusedModelFolderTest, AFolderInPlaceOfTheFileIsAnError) {
  std::filesystem::create_directory(Path(kModelFile));
  EXPECT_THAT(ModelFolderReader::Open(options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a folder, not a file")));
}

}  // namespace
}  // namespace penstock::server::checkpoint
