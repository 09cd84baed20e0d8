// Tokens that lie in files as they are: a byte each (text) or a little-endian
// u16 each (nanoGPT). Several files follow each other without a gap.
#ifndef PENSTOCK_SERVER_DATA_FLAT_TOKEN_STREAM_H_
#define PENSTOCK_SERVER_DATA_FLAT_TOKEN_STREAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/data/input_files.h"
#include "server/data/token_stream.h"

namespace penstock::server::data {

// Thread-safe.
class FlatTokenStream final : public TokenStream {
 public:
  struct Scanned {
    std::unique_ptr<FlatTokenStream> stream;
    Content content;
  };

  // Reads all of `input` once. REQUIRES: its format is text or nanogpt.
  // InvalidArgument naming file and byte when an id is not below `vocab`.
  static absl::StatusOr<Scanned> Open(Input input, int64_t vocab);

  int64_t tokens() const override { return starts_.back(); }
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override;

 private:
  FlatTokenStream(Input input, int token_bytes);
  absl::Status ReadFile(const InputFile& file, int64_t first,
                        absl::Span<int32_t> out) const;

  const Input input_;
  const int token_bytes_;  // 1 or 2.
  // Of each file its first token; one more element: the number of all tokens.
  std::vector<int64_t> starts_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_FLAT_TOKEN_STREAM_H_
