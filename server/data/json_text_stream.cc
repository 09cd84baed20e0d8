#include "server/data/json_text_stream.h"

#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {

int64_t JsonTextStream::tokens() const {
  return lines_->text_start(lines_->count());
}

absl::Status JsonTextStream::Read(int64_t first,
                                  absl::Span<int32_t> out) const {
  CHECK(first >= 0 && static_cast<int64_t>(out.size()) <= tokens() - first);
  JsonLine line;
  for (int64_t index = lines_->text_line_at(first); !out.empty(); ++index) {
    RETURN_IF_ERROR(lines_->Read(index, line));
    const std::string& text = *line.text;
    size_t at = first - lines_->text_start(index);
    for (; at <= text.size() && !out.empty(); ++at, ++first) {
      out[0] = at < text.size() ? static_cast<uint8_t>(text[at]) : '\n';
      out.remove_prefix(1);
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::data
