// The header of a safetensors file: which tensors it holds and where.
//
// A file is: u64 little-endian header length N, N bytes of JSON (which may be
// padded with spaces), and the data section. The JSON maps each name to
// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end)}, offsets from
// the start of the data section; "__metadata__" maps strings to strings.
//
// This is a parser of outside bytes: every input gives a header that satisfies
// the invariants below or one InvalidArgument that names the tensor and the
// rule. (tests/fuzz/safetensors_header_fuzz.cc)
#ifndef PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_HEADER_H_
#define PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::server::checkpoint {

// The format's own limit on N, which keeps a hostile header from taking memory.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;
// Bytes of the length before the header.
inline constexpr int64_t kLengthBytes = 8;

struct SafetensorsTensor {
  std::string name;
  std::string dtype;           // As in the file: "F32", "BF16", "U8", ...
  std::vector<int64_t> shape;  // Each at least 0; empty: a scalar.
  int64_t begin = 0;           // In the data section; end - begin is the size
  int64_t end = 0;             // of dtype and shape.

  int64_t elements() const;
  std::string ShapeText() const;  // "[2, 3]"
};

// Names are unique; tensors ascend, follow each other without gap or overlap,
// and fill the data section exactly.
struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;       // By ascending begin.
  std::vector<int32_t> by_name;                 // Their places, by name.
  std::map<std::string, std::string> metadata;  // "__metadata__"

  // Null when there is none.
  const SafetensorsTensor* Find(absl::string_view name) const;
};

// Bytes of an element of a safetensors dtype; 0 for one that does not exist.
int64_t SafetensorsElementBytes(absl::string_view dtype);

// Parses the JSON of a file whose data section has `data_bytes` bytes.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes);

// The header's JSON length from the file's first kLengthBytes bytes.
// InvalidArgument where it exceeds kMaxHeaderBytes or the file's size.
absl::StatusOr<int64_t> ParseSafetensorsLength(absl::string_view first_bytes,
                                               int64_t file_bytes);

}  // namespace penstock::server::checkpoint

#endif  // PENSTOCK_SERVER_CHECKPOINT_SAFETENSORS_HEADER_H_
