// The texts of JSON lines as one stream of bytes, a newline after each text.
#ifndef PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_
#define PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_

#include <memory>
#include <utility>

#include "server/data/json_lines.h"
#include "server/data/token_stream.h"

namespace penstock::server::data {

// Decodes the lines that a read touches; keeps no text. Thread-safe.
class JsonTextStream final : public TokenStream {
 public:
  // REQUIRES: lines->kind() is kText.
  explicit JsonTextStream(std::unique_ptr<JsonLines> lines)
      : lines_(std::move(lines)) {}

  int64_t tokens() const override;
  absl::Status Read(int64_t first, absl::Span<int32_t> out) const override;

 private:
  const std::unique_ptr<JsonLines> lines_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_TEXT_STREAM_H_
