// The sequences that training and validation draw from: windows of a token
// stream, or token lines. All have one length.
#ifndef PENSTOCK_SERVER_DATA_SEQUENCE_SOURCE_H_
#define PENSTOCK_SERVER_DATA_SEQUENCE_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace penstock::server::data {

// Where one sequence goes. Either span may be empty: then that half is not
// wanted (the first stage needs ids alone, the last labels alone).
struct SequenceOut {
  absl::Span<int32_t> ids;     // (sequence_length)
  absl::Span<int32_t> labels;  // (sequence_length); [t] is what position t
                               // must predict, -100: nothing
};

// Thread-safe.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  virtual int64_t sequences() const = 0;
  // Tokens predicted a sequence.
  virtual int64_t sequence_length() const = 0;

  // Reads the disk. REQUIRES: 0 <= index < sequences(). DataLoss when a file
  // has changed since it was opened.
  virtual absl::Status Read(int64_t index, const SequenceOut& out) const = 0;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_SEQUENCE_SOURCE_H_
