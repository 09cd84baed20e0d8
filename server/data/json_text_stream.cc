#include "server/data/json_text_stream.h"

#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {

using common::sync::MutexLock;

int64_t JsonTextStream::tokens() const {
  return lines_->text_start(lines_->count());
}

absl::Status JsonTextStream::Read(int64_t first,
                                  absl::Span<int32_t> out) const {
  CHECK(first >= 0 && static_cast<int64_t>(out.size()) <= tokens() - first);
  for (int64_t line = lines_->text_line_at(first); !out.empty(); ++line) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Text> decoded, Decoded(line));
    const std::string& text = decoded->bytes;
    size_t at = first - lines_->text_start(line);
    for (; at <= text.size() && !out.empty(); ++at, ++first) {
      out[0] = at < text.size() ? static_cast<uint8_t>(text[at]) : '\n';
      out.remove_prefix(1);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const JsonTextStream::Text>>
JsonTextStream::Decoded(int64_t line) const {
  {
    MutexLock lock(&mutex_);
    if (last_ != nullptr && last_->line == line) return last_;
    last_ = nullptr;  // A line may be long: not two of them.
  }
  JsonLine parsed;
  RETURN_IF_ERROR(lines_->Read(line, parsed));
  auto text = std::make_shared<const Text>(
      Text{.line = line, .bytes = *std::move(parsed.text)});
  MutexLock lock(&mutex_);
  last_ = text;
  return text;
}

}  // namespace penstock::server::data
