#include "server/checkpoint/safetensors_file.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/device/half.h"

namespace penstock::server::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is read as it lies");

absl::Status WithPath(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

float FromHalf(absl::string_view dtype, uint16_t bits) {
  const uint32_t wide =
      dtype == "BF16" ? device::BitsFromBf16(bits) : device::BitsFromF16(bits);
  return std::bit_cast<float>(wide);
}

}  // namespace

bool ConvertsToF32(absl::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

SafetensorsFile::SafetensorsFile(common::file::File file, Header header,
                                 int64_t data_start)
    : file_(std::move(file)),
      header_(std::move(header.parsed)),
      header_digest_(header.digest),
      data_start_(data_start) {}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(common::file::File file,
                   common::file::File::OpenForRead(path));
  std::string first(std::min(file.bytes(), kLengthBytes), '\0');
  const auto bytes_of = [](std::string& text) {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()),
                          text.size());
  };
  RETURN_IF_ERROR(file.ReadAt(0, bytes_of(first)));
  const absl::StatusOr<int64_t> length =
      ParseSafetensorsLength(first, file.bytes());
  if (!length.ok()) return WithPath(length.status(), path);
  std::string json(*length, '\0');
  RETURN_IF_ERROR(file.ReadAt(kLengthBytes, bytes_of(json)));
  const int64_t data_start = kLengthBytes + *length;
  absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader(json, file.bytes() - data_start);
  if (!header.ok()) return WithPath(header.status(), path);
  return SafetensorsFile(
      std::move(file),
      {.parsed = *std::move(header), .digest = common::digest::Sha256Of(json)},
      data_start);
}

absl::Status SafetensorsFile::ReadF32(const SafetensorsTensor& tensor,
                                      absl::Span<float> values,
                                      const PieceRead& piece_read) const {
  CHECK_EQ(static_cast<int64_t>(values.size()), tensor.elements());
  // No second copy of a large tensor.
  for (size_t done = 0; done < values.size(); done += kPieceElements) {
    RETURN_IF_ERROR(
        ReadPiece(tensor, done, values.subspan(done, kPieceElements)));
    if (piece_read) RETURN_IF_ERROR(piece_read());
  }
  return absl::OkStatus();
}

absl::Status SafetensorsFile::ReadPiece(const SafetensorsTensor& tensor,
                                        size_t first,
                                        absl::Span<float> piece) const {
  CHECK(ConvertsToF32(tensor.dtype)) << tensor.dtype;
  CHECK_LE(static_cast<int64_t>(first + piece.size()), tensor.elements());
  const bool narrow = tensor.dtype != "F32";
  const size_t element = narrow ? sizeof(uint16_t) : sizeof(float);
  std::vector<uint16_t> half(narrow ? piece.size() : 0);
  auto* const raw = narrow ? reinterpret_cast<std::byte*>(half.data())
                           : reinterpret_cast<std::byte*>(piece.data());
  RETURN_IF_ERROR(file_.ReadAt(
      data_start_ + tensor.begin + static_cast<int64_t>(first * element),
      absl::MakeSpan(raw, piece.size() * element)));
  for (size_t i = 0; i < half.size(); ++i) {
    piece[i] = FromHalf(tensor.dtype, half[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SafetensorsFile::ReadSample(
    const SafetensorsTensor& tensor) const {
  const int64_t bytes = tensor.end - tensor.begin;
  std::string sample(std::min(bytes, 3 * kSampleBytes), '\0');
  const auto read = [&](int64_t from, int64_t into, int64_t size) {
    return file_.ReadAt(
        data_start_ + tensor.begin + from,
        absl::MakeSpan(reinterpret_cast<std::byte*>(sample.data()) + into,
                       size));
  };
  if (bytes <= 3 * kSampleBytes) {
    RETURN_IF_ERROR(read(0, 0, bytes));
    return sample;
  }
  const int64_t last = bytes - kSampleBytes;
  RETURN_IF_ERROR(read(0, 0, kSampleBytes));
  RETURN_IF_ERROR(read(last / 2, kSampleBytes, kSampleBytes));
  RETURN_IF_ERROR(read(last, 2 * kSampleBytes, kSampleBytes));
  return sample;
}

}  // namespace penstock::server::checkpoint
