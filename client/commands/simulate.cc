// `penstock simulate`: a schedule through the code that every job goes through.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/commands/command.h"
#include "client/commands/flag_checks.h"
#include "client/commands/output_format.h"
#include "client/commands/shape_flags.h"
#include "client/commands/simulation_output.h"
#include "client/input_file.h"

namespace penstock::client::commands {
namespace {

struct SimulateFlags {
  std::string schedule;
  ShapeFlags shape;
  std::optional<double> forward, backward_input, backward_weight, transfer;
  double memory_limit = 0;
  std::string format = "table";
  std::string address;
};

// The service names a number that it refuses by its field, where people gave a
// flag.
absl::Status NamedByFlag(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  for (const absl::string_view field :
       {"forward", "backward_input", "backward_weight", "transfer",
        "memory_limit"}) {
    absl::string_view rest = status.message();
    if (absl::ConsumePrefix(&rest, field) && absl::StartsWith(rest, " ")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", absl::StrReplaceAll(field, {{"_", "-"}}), rest));
    }
  }
  return status;
}

int RunSimulate(const SimulateFlags& flags, const Environment& environment) {
  v1::SimulateScheduleRequest request;
  request.set_schedule(flags.schedule);
  if (absl::string_view path = flags.schedule;
      absl::ConsumePrefix(&path, "file:")) {
    auto file = ReadScheduleFile(std::string(path));
    if (!file.ok()) return Fail(file.status());
    request.set_file(*std::move(file));
  }
  SetShape(flags.shape, request);
  request.set_memory_limit(flags.memory_limit);
  using Request = v1::SimulateScheduleRequest;
  request.set_detail(flags.format == "csv"   ? Request::DETAIL_ORDER
                     : flags.format == "svg" ? Request::DETAIL_COMMANDS
                                             : Request::DETAIL_SUMMARY);
  if (flags.forward) request.set_forward(*flags.forward);
  if (flags.backward_input) request.set_backward_input(*flags.backward_input);
  if (flags.backward_weight) {
    request.set_backward_weight(*flags.backward_weight);
  }
  if (flags.transfer) request.set_transfer(*flags.transfer);
  auto coordinator = AnyCoordinator::Find(flags.address, environment);
  if (!coordinator.ok()) return Fail(coordinator.status());
  const auto response = coordinator->client().SimulateSchedule(request);
  if (!response.ok()) return Fail(NamedByFlag(response.status()));
  const std::string out = flags.format == "json"  ? SimulationJson(*response)
                          : flags.format == "csv" ? response->csv()
                          : flags.format == "svg"
                              ? SimulationSvg(request, *response)
                              : SimulationTable(*response);
  std::fputs(out.c_str(), stdout);
  return 0;
}

}  // namespace

void AddSimulate(CLI::App& app, const Environment& environment,
                 Chosen& chosen) {
  auto* command = app.add_subcommand(
      "simulate", "Generate, prove and time a pipeline schedule");
  auto flags = std::make_shared<SimulateFlags>();
  command
      ->add_option("--schedule", flags->schedule,
                   "A name, as in a job file, or file:orders.csv")
      ->required();
  AddShapeFlags(*command, flags->shape);
  command->add_option("--forward", flags->forward,
                      "Time of F of a rank's whole share of layers (1)");
  command->add_option("--backward-input", flags->backward_input,
                      "Time of I of a rank's whole share of layers (1)");
  command->add_option("--backward-weight", flags->backward_weight,
                      "Time of W of a rank's whole share of layers (1)");
  command->add_option("--transfer", flags->transfer, "Time of a message (0)");
  command
      ->add_option("--memory-limit", flags->memory_limit,
                   "A rank's limit, in activations of a whole stage; a part "
                   "of one is room for whole chunks (no limit)")
      ->check(LimitOf("activations of a whole stage"));
  AnyCoordinator::AddFlag(*command, flags->address);
  AddOutputFlag(*command, flags->format, {"table", "json", "csv", "svg"});
  command->callback([flags, &environment, &chosen] {
    chosen = [flags, &environment] { return RunSimulate(*flags, environment); };
  });
}

}  // namespace penstock::client::commands
