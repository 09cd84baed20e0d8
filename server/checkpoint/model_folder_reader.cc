#include "server/checkpoint/model_folder_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/digest/sha256.h"
#include "common/file/file.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "server/checkpoint/model_index.h"
#include "server/device/finite.h"

namespace penstock::server::checkpoint {
namespace {

constexpr absl::string_view kTiedHead = "lm_head.weight";

// Buffers that are no parameters and that old transformers wrote all the same.
bool IsIgnored(absl::string_view name) {
  for (const absl::string_view suffix :
       {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"}) {
    if (absl::EndsWith(name, suffix)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ModelFolderReader> ModelFolderReader::Open(
    const Options& options) {
  ModelFolderReader reader(options);
  for (const ExpectedTensor& tensor : options.expected) {
    const bool inserted =
        reader.shapes_.emplace(tensor.name, tensor.shape).second;
    CHECK(inserted) << "expected twice: " << tensor.name;
  }
  RETURN_IF_ERROR(reader.OpenFiles());
  for (int f = 0; f < static_cast<int>(reader.files_.size()); ++f) {
    const auto& tensors = reader.files_[f].header().tensors;
    for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
      RETURN_IF_ERROR(reader.Admit({.file = f, .tensor = t}));
    }
  }
  RETURN_IF_ERROR(reader.CheckComplete());
  return reader;
}

absl::Status ModelFolderReader::OpenFiles() {
  const std::string single = absl::StrCat(options_.folder, "/", kModelFile);
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(single);
  if (file.ok()) {
    files_.push_back(*std::move(file));
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(file.status())) return file.status();
  const std::string index_path =
      absl::StrCat(options_.folder, "/", kModelIndexFile);
  absl::StatusOr<std::string> text =
      common::file::ReadFile(index_path, kMaxHeaderBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        "model folder ", options_.folder, " has neither ", kModelFile, " nor ",
        kModelIndexFile, " (other formats are not read)"));
  }
  RETURN_IF_ERROR(text.status());
  absl::StatusOr<ModelIndex> index = ParseModelIndex(*text);
  if (!index.ok()) {
    return absl::Status(
        index.status().code(),
        absl::StrCat(index_path, ": ", index.status().message()));
  }
  std::map<std::string, int> numbers;  // Of the files, in order of name.
  for (const auto& [tensor, shard] : index->shards) numbers[shard] = 0;
  for (auto& [shard, number] : numbers) {
    number = static_cast<int>(files_.size());
    ASSIGN_OR_RETURN(auto opened, SafetensorsFile::Open(absl::StrCat(
                                      options_.folder, "/", shard)));
    files_.push_back(std::move(opened));
  }
  for (const auto& [tensor, shard] : index->shards) {
    if (files_[numbers[shard]].header().Find(tensor) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(files_[numbers[shard]].path(), ": tensor ",
                     common::text::Quoted(tensor), " is missing, which ",
                     kModelIndexFile, " says is here"));
  }
  return absl::OkStatus();
}

const SafetensorsTensor& ModelFolderReader::TensorAt(const Place& place) const {
  return files_[place.file].header().tensors[place.tensor];
}

std::string ModelFolderReader::Where(const Place& place) const {
  return absl::StrCat(files_[place.file].path(), ": tensor ",
                      common::text::Quoted(TensorAt(place).name));
}

absl::Status ModelFolderReader::Admit(const Place& place) {
  const SafetensorsTensor& tensor = TensorAt(place);
  if (IsIgnored(tensor.name)) return absl::OkStatus();
  std::string name = tensor.name;
  std::vector<int64_t> shape;
  if (!options_.tied_head_source.empty() && name == kTiedHead) {
    shape = shapes_.at(options_.tied_head_source);
  } else {
    auto expected = shapes_.find(name);
    if (expected == shapes_.end()) {
      name = absl::StrCat(options_.prefix, tensor.name);
      expected = shapes_.find(name);
    }
    if (expected == shapes_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Where(place),
                       " is not used by the model that config.json describes"));
    }
    shape = expected->second;
  }
  if (!ConvertsToF32(tensor.dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(place), " has dtype ", tensor.dtype,
                     ", must be F32, F16 or BF16"));
  }
  if (tensor.shape != shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(place), " has shape ", tensor.ShapeText(),
                     ", the model needs [", absl::StrJoin(shape, ", "), "]"));
  }
  const auto [position, inserted] = places_.emplace(name, place);
  if (!inserted) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(place), " is there twice, the other is ",
                     Where(position->second)));
  }
  return absl::OkStatus();
}

absl::Status ModelFolderReader::CheckComplete() const {
  for (const ExpectedTensor& tensor : options_.expected) {
    if (places_.contains(tensor.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(options_.folder, ": tensor ", tensor.name, " of shape [",
                     absl::StrJoin(tensor.shape, ", "), "] is missing from ",
                     absl::StrJoin(paths(), ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ModelFolderReader::Digest(
    const PieceRead& piece_read) const {
  common::digest::Sha256 sha;
  for (const SafetensorsFile& file : files_) {
    const std::string name =
        std::filesystem::path(file.path()).filename().string();
    sha.UpdateU64(name.size());
    sha.Update(name);
    sha.UpdateU64(file.bytes());
    const common::digest::Sha256Digest& header = file.header_digest();
    sha.Update(absl::string_view(reinterpret_cast<const char*>(header.data()),
                                 header.size()));
    for (const SafetensorsTensor& tensor : file.header().tensors) {
      ASSIGN_OR_RETURN(const std::string sample, file.ReadSample(tensor));
      sha.Update(sample);
      if (piece_read) RETURN_IF_ERROR(piece_read());
    }
  }
  return common::digest::ToHex(sha.Finish());
}

std::vector<std::string> ModelFolderReader::paths() const {
  std::vector<std::string> paths;
  for (const SafetensorsFile& file : files_) paths.push_back(file.path());
  return paths;
}

absl::Status ModelFolderReader::Read(absl::string_view name,
                                     absl::Span<float> values,
                                     const PieceRead& piece_read) const {
  const auto place = places_.find(name);
  CHECK(place != places_.end()) << "not expected: " << name;
  RETURN_IF_ERROR(files_[place->second.file].ReadF32(TensorAt(place->second),
                                                     values, piece_read));
  if (device::CountNonFinite(values) == 0) return absl::OkStatus();
  const auto broken =
      std::find_if(values.begin(), values.end(),
                   [](float value) { return !std::isfinite(value); });
  return absl::InvalidArgumentError(
      absl::StrCat(Where(place->second), " holds ", *broken, " at element ",
                   broken - values.begin(), " of ", values.size(),
                   "; no training can start from it"));
}

absl::Status ModelFolderReader::CheckTiedHead(
    const PieceRead& piece_read) const {
  const auto head = places_.find(kTiedHead);
  if (options_.tied_head_source.empty() || head == places_.end()) {
    return absl::OkStatus();
  }
  const Place& embedding = places_.find(options_.tied_head_source)->second;
  const size_t elements = TensorAt(embedding).elements();
  const auto read = [this](const Place& place, size_t first,
                           std::vector<float>& piece) {
    return files_[place.file].ReadPiece(TensorAt(place), first,
                                        absl::MakeSpan(piece));
  };
  std::vector<float> a, b;
  for (size_t done = 0; done < elements; done += a.size()) {
    a.resize(std::min(SafetensorsFile::kPieceElements, elements - done));
    b.resize(a.size());
    RETURN_IF_ERROR(read(embedding, done, a));
    if (piece_read) RETURN_IF_ERROR(piece_read());
    RETURN_IF_ERROR(read(head->second, done, b));
    if (piece_read) RETURN_IF_ERROR(piece_read());
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        Where(head->second), " differs from ", options_.tied_head_source,
        ", though config.json says tie_word_embeddings"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::checkpoint
