// `penstock stages`: the stage daemons that a coordinator knows.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/commands/output_format.h"
#include "client/json_output.h"
#include "client/report/text.h"
#include "client/text_table.h"

namespace penstock::client::commands {
namespace {

std::string Table(const v1::ListStagesResponse& stages, bool wide) {
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "DEVICE", "HOST", "JOB", "RANK", "STEP"}};
  if (wide) {
    for (const char* column :
         {"INCARNATION", "PID", "MONITOR", "DATA", "CLOCK SKEW", "MEMORY"}) {
      rows[0].push_back(column);
    }
  }
  for (const v1::Stage& stage : stages.stages()) {
    std::vector<std::string> row = {
        Printable(stage.name()),
        EnumWord(stage.state()),
        Printable(stage.device().kind()),
        Printable(stage.host()),
        stage.job_id().empty() ? "-" : Printable(stage.job_id()),
        stage.job_id().empty() ? "-" : absl::StrCat(stage.rank()),
        absl::StrCat(stage.step())};
    if (wide) {
      row.push_back(Printable(stage.incarnation()));
      row.push_back(absl::StrCat(stage.pid()));
      row.push_back(Printable(stage.monitor_address()));
      row.push_back(Printable(stage.data_address()));
      row.push_back(stage.has_clock_skew()
                        ? ToJson(stage.clock_skew()).get<std::string>()
                        : "-");
      row.push_back(
          stage.resident_bytes() > 0
              ? report::Bytes(static_cast<double>(stage.resident_bytes()))
              : "-");
    }
    rows.push_back(std::move(row));
  }
  return FormatTable(rows);
}

int Run(const std::string& address, const std::string& format,
        const Environment& environment) {
  const auto client = ConfiguredCoordinator(address, environment);
  if (!client.ok()) return Fail(client.status());
  const auto stages = (*client)->ListStages();
  if (!stages.ok()) return Fail(stages.status());
  std::string out;
  if (format == "json") {
    out = absl::StrCat(ToJson(*stages)["stages"].dump(2), "\n");
  } else if (format == "yaml") {
    out = ToYaml(ToJson(*stages)["stages"]);
  } else if (format == "name") {
    for (const v1::Stage& stage : stages->stages()) {
      absl::StrAppend(&out, Printable(stage.name()), "\n");
    }
  } else {
    out = Table(*stages, format == "wide");
  }
  std::fputs(out.c_str(), stdout);
  return 0;
}

}  // namespace

void AddStages(CLI::App& app, const Environment& environment, Chosen& chosen) {
  auto* command =
      app.add_subcommand("stages", "List the stage daemons of a cluster");
  auto address = std::make_shared<std::string>();
  auto format = std::make_shared<std::string>("table");
  AddAddressFlag(*command, *address);
  AddOutputFlag(*command, *format, {"table", "wide", "json", "yaml", "name"});
  command->callback([=, &environment, &chosen] {
    chosen = [=, &environment] { return Run(*address, *format, environment); };
  });
}

}  // namespace penstock::client::commands
