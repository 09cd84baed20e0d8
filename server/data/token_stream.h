// A long row of token ids, read anywhere: a text, or a file of ids.
#ifndef PENSTOCK_SERVER_DATA_TOKEN_STREAM_H_
#define PENSTOCK_SERVER_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"

namespace penstock::server::data {

// Thread-safe.
class TokenStream {
 public:
  virtual ~TokenStream() = default;

  virtual int64_t tokens() const = 0;

  // Fills `out` with the tokens from `first` on; reads the disk. REQUIRES: the
  // range lies within tokens(). DataLoss when a file has changed;
  // ResourceExhausted, reason OUT_OF_MEMORY, when a line of text is too long
  // for the memory.
  virtual absl::Status Read(int64_t first, absl::Span<int32_t> out) const = 0;
};

// What one pass over all of an input found.
struct Content {
  // Of each file's size and bytes, in order.
  common::digest::Sha256Digest digest{};
  int64_t tokens = 0;
  int32_t largest_id = 0;  // Labels included.
  // FILE:LINE of the first token line whose attention_mask would matter
  // (JsonLine::masks); empty: there is none.
  std::string masked_line;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_TOKEN_STREAM_H_
