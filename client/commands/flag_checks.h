// What flags are checked for while they are parsed, with errors as
// "--stages: is 0; a whole number of at least 1".
#ifndef PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_
#define PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::client::commands {

inline CLI::Validator AtLeast(int lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        int value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= lowest) return "";
        return absl::StrCat("is ", text, "; a whole number of at least ",
                            lowest);
      },
      "");
}

// Of `what`, a plural; without the flag there is no limit.
inline CLI::Validator LimitOf(absl::string_view what) {
  return CLI::Validator(
      [what = std::string(what)](std::string& text) -> std::string {
        double value = 0;
        if (absl::SimpleAtod(text, &value) && value > 0 &&
            std::isfinite(value)) {
          return "";
        }
        return absl::StrCat("is ", text, "; a number above 0 of ", what,
                            ", or no flag for no limit");
      },
      "");
}

inline CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "must not be empty" : "";
      },
      "");
}

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_
