#include "server/data/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock::server::data {

std::string Quote(absl::string_view bytes) {
  return absl::StrCat("\"", absl::CHexEscape(bytes.substr(0, kMaxQuotedBytes)),
                      bytes.size() > kMaxQuotedBytes ? "\"..." : "\"");
}

}  // namespace penstock::server::data
