// Windows of a token stream: sequence_length + 1 tokens each, one every
// sequence_length tokens, so that each token but the first is predicted once.
// What is left at the end is dropped (docs/numerics.md).
#ifndef PENSTOCK_SERVER_DATA_WINDOW_SOURCE_H_
#define PENSTOCK_SERVER_DATA_WINDOW_SOURCE_H_

#include <cstdint>
#include <memory>

#include "server/data/sequence_source.h"
#include "server/data/token_stream.h"

namespace penstock::server::data {

// How many windows `tokens` tokens hold; 0 where they are too few for one.
// REQUIRES: sequence_length >= 1.
int64_t WindowCount(int64_t tokens, int64_t sequence_length);

// Thread-safe.
class WindowSource final : public SequenceSource {
 public:
  WindowSource(std::unique_ptr<TokenStream> stream, int64_t sequence_length);

  int64_t sequences() const override { return sequences_; }
  int64_t sequence_length() const override { return sequence_length_; }
  absl::Status Read(int64_t index, const SequenceOut& out) const override;

 private:
  const std::unique_ptr<TokenStream> stream_;
  const int64_t sequence_length_;
  const int64_t sequences_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_WINDOW_SOURCE_H_
