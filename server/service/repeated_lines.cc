#include "server/service/repeated_lines.h"

#include "absl/strings/str_cat.h"
#include "common/time/duration_text.h"

namespace penstock::server::service {

std::optional<std::string> RepeatedLines::Next(
    absl::string_view kind, absl::string_view line,
    common::time::MonotonicTime now) {
  const auto [it, first] =
      kinds_.try_emplace(std::string(kind), Kind{.said = now});
  if (first) return std::string(line);
  Kind& known = it->second;
  const absl::Duration since = now - known.said;
  if (since < interval_) {
    ++known.left_out;
    return std::nullopt;
  }
  std::string text(line);
  if (known.left_out > 0) {
    absl::StrAppend(&text, " (and ", known.left_out, " times more in the last ",
                    common::time::DurationText(since), ")");
  }
  known = {.said = now};
  return text;
}

}  // namespace penstock::server::service
