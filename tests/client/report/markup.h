// Looks at HTML and SVG as a browser's tokenizer does, for tests.
#ifndef PENSTOCK_TESTS_CLIENT_REPORT_MARKUP_H_
#define PENSTOCK_TESTS_CLIENT_REPORT_MARKUP_H_

#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::client::report {

inline int CountOf(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// "" where every element is closed in order and attributes are quoted;
// otherwise what is wrong.
inline std::string MarkupFault(absl::string_view text) {
  const std::set<std::string> kVoid = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '>') return absl::StrCat("stray > at ", i);
    if (text[i] != '<') continue;
    const bool closing = text[++i] == '/';
    if (closing) ++i;
    std::string name;
    while (
        i < text.size() &&
        (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '!')) {
      name.push_back(text[i++]);
    }
    if (name.empty()) return absl::StrCat("stray < at ", i);
    bool quoted = false;
    while (i < text.size() && (quoted || text[i] != '>')) {
      if (text[i] == '"') quoted = !quoted;
      if (text[i] == '<') return absl::StrCat("< inside the tag at ", i);
      ++i;
    }
    if (i == text.size()) return absl::StrCat("unclosed tag ", name);
    if (closing) {
      if (open.empty() || open.back() != name) {
        return absl::StrCat("</", name, "> closes ",
                            open.empty() ? "nothing" : open.back());
      }
      open.pop_back();
    } else if (text[i - 1] != '/' && kVoid.count(name) == 0) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : absl::StrCat("never closed: ", open.back());
}

}  // namespace penstock::client::report

#endif  // PENSTOCK_TESTS_CLIENT_REPORT_MARKUP_H_
