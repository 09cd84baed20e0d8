// The -o flag, one for all commands that print data.
#ifndef PENSTOCK_CLIENT_COMMANDS_OUTPUT_FORMAT_H_
#define PENSTOCK_CLIENT_COMMANDS_OUTPUT_FORMAT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace penstock::client::commands {

// Adds "-o, --output" with these choices; `format` holds the default.
inline void AddOutputFlag(CLI::App& command, std::string& format,
                          std::vector<std::string> choices) {
  command.add_option("-o,--output", format, "Output format")
      ->check(CLI::IsMember(std::move(choices)))
      ->capture_default_str();
}

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_OUTPUT_FORMAT_H_
