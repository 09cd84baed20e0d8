// What flags are checked for while they are parsed, with errors as
// "--stages: is 0; a whole number of at least 1".
#ifndef PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_
#define PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

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

inline CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        return text.empty() ? "must not be empty" : "";
      },
      "");
}

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_FLAG_CHECKS_H_
