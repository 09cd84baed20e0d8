#include "common/text/quote.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"

namespace penstock::common::text {

std::string Quoted(absl::string_view bytes) {
  std::string quoted = "\"";
  size_t at = 0;
  while (at < bytes.size()) {
    const absl::string_view rest = bytes.substr(at);
    const size_t character = Utf8SequenceBytes(rest);
    const size_t length = std::max<size_t>(character, 1);
    if (at + length > kMaxQuotedBytes) break;
    const absl::string_view shown = rest.substr(0, length);
    const bool plain = character > 1 && ControlBytes(rest) == 0;
    absl::StrAppend(&quoted, plain ? shown : absl::CHexEscape(shown));
    at += length;
  }
  absl::StrAppend(&quoted, at < bytes.size() ? "...\"" : "\"");
  return quoted;
}

std::string OneLine(absl::string_view bytes) {
  std::string line;
  while (!bytes.empty()) {
    const size_t character = Utf8SequenceBytes(bytes);
    const bool plain = character > 0 && !absl::ascii_iscntrl(bytes[0]) &&
                       ControlBytes(bytes) == 0;
    const absl::string_view shown =
        bytes.substr(0, std::max<size_t>(character, 1));
    if (plain) {
      line.append(shown.data(), shown.size());
    } else {
      line += absl::CHexEscape(shown);
    }
    bytes.remove_prefix(shown.size());
  }
  return line;
}

std::string CutAfter(size_t bytes, std::string text) {
  if (text.size() <= bytes) return text;
  size_t kept = bytes;
  while (kept > 0 && kept + 3 > bytes && ContinuesCharacter(text[kept])) --kept;
  const size_t more = text.size() - kept;
  text.resize(kept);
  absl::StrAppend(&text, "... (", more, " more bytes)");
  return text;
}

}  // namespace penstock::common::text
