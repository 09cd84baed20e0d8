// What tests of whole model folders share.
#ifndef PENSTOCK_TESTS_SERVER_CHECKPOINT_MODEL_FOLDER_CASE_H_
#define PENSTOCK_TESTS_SERVER_CHECKPOINT_MODEL_FOLDER_CASE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/file/file.h"
#include "gtest/gtest.h"
#include "server/checkpoint/model_folder_reader.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::checkpoint {

// A tensor of a file that a test writes by hand.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};

inline std::string F32Data(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

inline std::string HalfData(const std::vector<uint16_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(uint16_t));
}

class ModelFolderCase : public ::testing::Test {
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

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_TESTS_SERVER_CHECKPOINT_MODEL_FOLDER_CASE_H_
