#include "client/report/job_yaml.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock::client::report {
namespace {

// "\"a\\\"b\"" to "a\"b".
std::string Unquoted(absl::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') {
    return std::string(value);
  }
  std::string out;
  for (size_t i = 1; i + 1 < value.size(); ++i) {
    const char next = value[i + 1];
    if (value[i] == '\\' && i + 2 < value.size() &&
        (next == '"' || next == '\\')) {
      ++i;
    }
    out.push_back(value[i]);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> ResolvedKeys(absl::string_view text) {
  std::map<std::string, std::string> keys;
  std::vector<std::string> path;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    const size_t indent = line.find_first_not_of(' ');
    if (indent == absl::string_view::npos) continue;
    const size_t level = indent / 2;
    line.remove_prefix(indent);
    absl::ConsumePrefix(&line, "# ");
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos || colon == 0 || level > path.size()) {
      continue;
    }
    path.resize(level);
    path.push_back(std::string(line.substr(0, colon)));
    const absl::string_view value =
        absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (!value.empty()) {
      keys[absl::StrJoin(path, ".")] = Unquoted(value);
      path.pop_back();
    }
  }
  return keys;
}

}  // namespace penstock::client::report
