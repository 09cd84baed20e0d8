// `penstock version`.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "client/commands/command.h"
#include "client/commands/output_format.h"
#include "common/process/build_info.h"

namespace penstock::client::commands {

void AddVersion(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("version", "Print version and protocol");
  auto format = std::make_shared<std::string>("table");
  AddOutputFlag(*command, *format, {"table", "json"});
  command->callback([format, &chosen] {
    chosen = [format] {
      namespace process = common::process;
      if (*format == "json") {
        const nlohmann::ordered_json json = {
            {"penstock", process::kVersion},
            {"build", process::kBuild},
            {"protocol",
             {{"lowest", process::kLowestProtocol},
              {"highest", process::kHighestProtocol}}}};
        std::printf("%s\n", json.dump(2).c_str());
      } else {
        std::printf("penstock %s (%s), protocol %d to %d\n", process::kVersion,
                    process::kBuild, process::kLowestProtocol,
                    process::kHighestProtocol);
      }
      return 0;
    };
  });
}

}  // namespace penstock::client::commands
