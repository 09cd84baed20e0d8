#include "client/arguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::client {
namespace {

// Of the whole command line as it is planned.
constexpr absl::string_view kVerbsNotBuilt[] = {
    "init",       "submit",   "list",    "get",     "describe",  "events",
    "watch",      "wait",     "logs",    "fetch",   "cancel",    "requeue",
    "checkpoint", "delete",   "drain",   "undrain", "roots",     "top",
    "dashboard",  "diagnose", "plan",    "sample",  "evaluate",  "data",
    "inspect",    "export",   "explain", "config",  "completion"};

// Bytes of the sequence that `text` begins with; 0: it is none.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is beyond U+10FFFF.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)) {
    return 0;
  }
  return length;
}

// What argument i is: "--set" for its value, "argument 3" for one of its own.
std::string Name(const std::vector<std::string>& arguments, size_t i) {
  const std::string& text = arguments[i];
  if (absl::StartsWith(text, "--")) {
    const std::string flag = text.substr(0, text.find('='));
    if (IsUtf8(flag)) return flag;
  } else if (i > 0 && absl::StartsWith(arguments[i - 1], "-")) {
    return arguments[i - 1];
  }
  return absl::StrCat("argument ", i + 1);
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::Status CheckArguments(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (IsUtf8(arguments[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Name(arguments, i), ": \"", absl::CHexEscape(arguments[i]),
                     "\" is not UTF-8; Penstock's paths and names are"));
  }
  if (!arguments.empty() &&
      std::find(std::begin(kVerbsNotBuilt), std::end(kVerbsNotBuilt),
                arguments[0]) != std::end(kVerbsNotBuilt)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", arguments[0],
                     "\" is not built yet; `penstock "
                     "--help` lists the verbs that are"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::client
