// Reads tensors of one safetensors file as f32, each when it is asked for.
#ifndef PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_FILE_H_
#define PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_FILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "common/file/file.h"
#include "server/checkpoint/safetensors_header.h"

namespace penstock::server::checkpoint {

// Called for each piece of a tensor that was read; its error ends the reading
// and is returned.
using PieceRead = std::function<absl::Status()>;

// Whether ReadF32 can convert the dtype: F32, F16, BF16.
bool ConvertsToF32(absl::string_view dtype);

// Immutable; thread-safe. Holds the header and an open descriptor, no data.
class SafetensorsFile {
 public:
  // Reads and checks the header. InvalidArgument, with the path, for a file
  // that breaks the format; NotFound and the like where it cannot be opened.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return file_.bytes(); }
  const SafetensorsHeader& header() const { return header_; }
  // Of the header's text, as it stands in the file.
  const common::digest::Sha256Digest& header_digest() const {
    return header_digest_;
  }

  // All elements of one of header()'s tensors, row-major, in pieces of
  // kPieceElements. REQUIRES: ConvertsToF32(tensor.dtype) and values.size() ==
  // tensor.elements(). DataLoss when the file has become shorter since Open().
  static constexpr size_t kPieceElements = 1 << 20;
  absl::Status ReadF32(const SafetensorsTensor& tensor,
                       absl::Span<float> values,
                       const PieceRead& piece_read = {}) const;

  // The elements from `first` on, in one read. REQUIRES:
  // ConvertsToF32(tensor.dtype), and that the tensor has them. As ReadF32().
  absl::Status ReadPiece(const SafetensorsTensor& tensor, size_t first,
                         absl::Span<float> piece) const;

  // Bytes of one of header()'s tensors as they stand in the file, always the
  // same ones: kSampleBytes each at its beginning, its middle and its end, or
  // all where it has no more. DataLoss as ReadF32().
  static constexpr int64_t kSampleBytes = 4096;
  absl::StatusOr<std::string> ReadSample(const SafetensorsTensor& tensor) const;

 private:
  // The header as it stands in the file, and what was read from it.
  struct Header {
    SafetensorsHeader parsed;
    common::digest::Sha256Digest digest;
  };
  SafetensorsFile(common::file::File file, Header header, int64_t data_start);

  common::file::File file_;
  SafetensorsHeader header_;
  common::digest::Sha256Digest header_digest_;
  int64_t data_start_;
};

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_FILE_H_
