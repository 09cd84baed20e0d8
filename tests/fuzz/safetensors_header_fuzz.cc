// Any bytes as a safetensors file, and as a shard index: the parsers end with a
// value that keeps its invariants, or with InvalidArgument.
//
// Corpus: tests/fuzz/safetensors, whole files.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "server/checkpoint/model_index.h"
#include "server/checkpoint/safetensors_header.h"

namespace {

namespace checkpoint = penstock::server::checkpoint;

void CheckHeader(absl::string_view file) {
  const auto length = checkpoint::ParseSafetensorsLength(
      file.substr(0, checkpoint::kLengthBytes),
      static_cast<int64_t>(file.size()));
  if (!length.ok()) {
    CHECK(absl::IsInvalidArgument(length.status())) << length.status();
    return;
  }
  const absl::string_view json = file.substr(checkpoint::kLengthBytes, *length);
  const int64_t data =
      static_cast<int64_t>(file.size()) - checkpoint::kLengthBytes - *length;
  const auto header = checkpoint::ParseSafetensorsHeader(json, data);
  if (!header.ok()) {
    CHECK(absl::IsInvalidArgument(header.status())) << header.status();
    return;
  }
  int64_t next = 0;
  for (const checkpoint::SafetensorsTensor& tensor : header->tensors) {
    CHECK_EQ(tensor.begin, next);
    CHECK_GE(tensor.end, tensor.begin);
    CHECK_EQ(
        tensor.elements() * checkpoint::SafetensorsElementBytes(tensor.dtype),
        tensor.end - tensor.begin);
    next = tensor.end;
    CHECK(header->Find(tensor.name) == &tensor) << "names are unique";
  }
  CHECK_EQ(next, data);
}

void CheckIndex(absl::string_view text) {
  const auto index = checkpoint::ParseModelIndex(text);
  if (!index.ok()) {
    CHECK(absl::IsInvalidArgument(index.status())) << index.status();
    return;
  }
  for (const auto& [tensor, shard] : index->shards) {
    CHECK_EQ(shard.find('/'), std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  CheckHeader(bytes);
  CheckIndex(bytes);
  return 0;
}
