#include "client/arguments.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "common/text/utf8.h"

namespace penstock::client {
namespace {

// Of the whole command line as it is planned.
constexpr absl::string_view kVerbsNotBuilt[] = {
    "init",       "submit",   "list",    "get",     "describe",  "events",
    "watch",      "wait",     "logs",    "fetch",   "cancel",    "requeue",
    "checkpoint", "delete",   "drain",   "undrain", "roots",     "top",
    "dashboard",  "diagnose", "plan",    "sample",  "evaluate",  "data",
    "inspect",    "export",   "explain", "config",  "completion"};

// What argument i is: "--set" for its value, "argument 3" for one of its own.
std::string Name(const std::vector<std::string>& arguments, size_t i) {
  const std::string& text = arguments[i];
  if (absl::StartsWith(text, "--")) {
    const std::string flag = text.substr(0, text.find('='));
    if (common::text::IsUtf8(flag)) return flag;
  } else if (i > 0 && absl::StartsWith(arguments[i - 1], "-")) {
    return arguments[i - 1];
  }
  return absl::StrCat("argument ", i + 1);
}

}  // namespace

absl::Status CheckUtf8(absl::string_view what, absl::string_view text) {
  if (common::text::IsUtf8(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", common::text::Quoted(text),
                   " is not UTF-8; Penstock's paths and names are"));
}

absl::Status CheckVerb(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& verbs) {
  if (arguments.empty() || absl::StartsWith(arguments[0], "-") ||
      std::find(verbs.begin(), verbs.end(), arguments[0]) != verbs.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no verb ", common::text::Quoted(arguments[0]),
                   "; there are ", absl::StrJoin(verbs, ", ")));
}

absl::Status CheckArguments(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    RETURN_IF_ERROR(
        CheckUtf8(absl::StrCat(Name(arguments, i), ":"), arguments[i]));
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
