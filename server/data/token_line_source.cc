#include "server/data/token_line_source.h"

#include <algorithm>

#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::data {

absl::Status TokenLineSource::Read(int64_t index,
                                   const SequenceOut& out) const {
  JsonLine line;
  RETURN_IF_ERROR(lines_->Read(index, line));
  if (!out.ids.empty()) {
    CHECK_EQ(static_cast<int64_t>(out.ids.size()), sequence_length());
    std::copy_n(line.input_ids.begin(), out.ids.size(), out.ids.begin());
  }
  if (!out.labels.empty()) {
    CHECK_EQ(static_cast<int64_t>(out.labels.size()), sequence_length());
    const auto& labels = line.has_labels ? line.labels : line.input_ids;
    std::copy_n(labels.begin() + 1, out.labels.size(), out.labels.begin());
  }
  return absl::OkStatus();
}

}  // namespace penstock::server::data
