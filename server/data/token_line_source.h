// Token lines: one line is one sequence. A line of T tokens predicts T - 1:
// position t predicts the label at t + 1, which is input_ids[t + 1] where the
// line has no labels (Hugging Face's alignment; -100 is ignored).
#ifndef PENSTOCK_SERVER_DATA_TOKEN_LINE_SOURCE_H_
#define PENSTOCK_SERVER_DATA_TOKEN_LINE_SOURCE_H_

#include <memory>
#include <utility>

#include "server/data/json_lines.h"
#include "server/data/sequence_source.h"

namespace penstock::server::data {

// Thread-safe.
class TokenLineSource final : public SequenceSource {
 public:
  // REQUIRES: lines->kind() is kTokens.
  explicit TokenLineSource(std::unique_ptr<JsonLines> lines)
      : lines_(std::move(lines)) {}

  int64_t sequences() const override { return lines_->count(); }
  int64_t sequence_length() const override { return lines_->line_tokens() - 1; }
  absl::Status Read(int64_t index, const SequenceOut& out) const override;

 private:
  const std::unique_ptr<JsonLines> lines_;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_TOKEN_LINE_SOURCE_H_
