#include "server/checkpoint/safetensors_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/checkpoint/safetensors_header.h"

namespace penstock::server::checkpoint {
namespace {

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  return elements;
}

}  // namespace

std::string FormatSafetensorsHeader(absl::Span<const WrittenTensor> tensors) {
  nlohmann::ordered_json json;
  json["__metadata__"]["format"] = "pt";
  // Its [] looks for a new key among all before it.
  auto& entries = json.get_ref<nlohmann::ordered_json::object_t&>();
  int64_t offset = 0;
  for (const WrittenTensor& tensor : tensors) {
    const int64_t end =
        offset + Elements(tensor.shape) * static_cast<int64_t>(sizeof(float));
    nlohmann::ordered_json entry;
    entry["dtype"] = "F32";
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {offset, end};
    entries.push_back({tensor.name, std::move(entry)});
    offset = end;
  }
  std::string text = json.dump();
  text.append((8 - (kLengthBytes + text.size()) % 8) % 8, ' ');
  std::string length(kLengthBytes, '\0');
  for (int i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  }
  return length + text;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const Options& options) {
  ASSIGN_OR_RETURN(
      common::file::File file,
      common::file::File::Create(options.path + options.temporary_suffix));
  RETURN_IF_ERROR(file.Write(FormatSafetensorsHeader(options.tensors)));
  return SafetensorsWriter(options, std::move(file));
}

absl::Status SafetensorsWriter::Append(absl::string_view name,
                                       absl::Span<const float> values) {
  if (next_ == options_.tensors.size() ||
      options_.tensors[next_].name != name ||
      Elements(options_.tensors[next_].shape) !=
          static_cast<int64_t>(values.size())) {
    return absl::InternalError(absl::StrCat(
        "write ", options_.path, ": tensor ", name, " of ", values.size(),
        " values is not the next one of the header"));
  }
  ++next_;
  return file_.Write(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                          values.size() * sizeof(float)));
}

absl::Status SafetensorsWriter::Close() {
  if (next_ != options_.tensors.size()) {
    return absl::InternalError(
        absl::StrCat("write ", options_.path, ": only ", next_, " of ",
                     options_.tensors.size(), " tensors were written"));
  }
  RETURN_IF_ERROR(file_.SyncAndClose());
  return common::file::RenameDurably(file_.path(), options_.path);
}

}  // namespace penstock::server::checkpoint
