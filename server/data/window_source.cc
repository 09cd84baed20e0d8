#include "server/data/window_source.h"

#include <utility>

#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {

int64_t WindowCount(int64_t tokens, int64_t sequence_length) {
  CHECK_GE(sequence_length, 1);
  return tokens <= 0 ? 0 : (tokens - 1) / sequence_length;
}

WindowSource::WindowSource(std::unique_ptr<TokenStream> stream,
                           int64_t sequence_length)
    : stream_(std::move(stream)),
      sequence_length_(sequence_length),
      sequences_(WindowCount(stream_->tokens(), sequence_length)) {}

absl::Status WindowSource::Read(int64_t index, const SequenceOut& out) const {
  CHECK(index >= 0 && index < sequences_) << index << " of " << sequences_;
  const int64_t first = index * sequence_length_;
  if (!out.ids.empty()) {
    CHECK_EQ(static_cast<int64_t>(out.ids.size()), sequence_length_);
    RETURN_IF_ERROR(stream_->Read(first, out.ids));
  }
  if (!out.labels.empty()) {
    CHECK_EQ(static_cast<int64_t>(out.labels.size()), sequence_length_);
    RETURN_IF_ERROR(stream_->Read(first + 1, out.labels));
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::data
