// `penstock verify`: a schedule file through the proof that every job's order
// goes through.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/commands/flag_checks.h"
#include "client/commands/shape_flags.h"
#include "client/input_file.h"

namespace penstock::client::commands {
namespace {

struct Flags {
  std::string file;
  ShapeFlags shape;
  std::optional<int> slots;
  std::string address;
};

int Run(const Flags& flags, const Environment& environment) {
  auto file = ReadScheduleFile(flags.file);
  if (!file.ok()) return Fail(file.status());
  v1::VerifyScheduleRequest request;
  request.set_file(*std::move(file));
  request.set_file_name(flags.file);
  SetShape(flags.shape, request);
  if (flags.slots) request.set_slots(*flags.slots);
  auto coordinator = AnyCoordinator::Find(flags.address, environment);
  if (!coordinator.ok()) return Fail(coordinator.status());
  const auto response = coordinator->client().VerifySchedule(request);
  if (!response.ok()) return Fail(response.status());
  const std::string slots =
      flags.slots.has_value()
          ? absl::StrCat(" with ", *flags.slots, " slots on every edge")
          : "";
  std::printf("%s: %lld commands, correct%s; makespan %g with unit times\n",
              flags.file.c_str(), static_cast<long long>(response->commands()),
              slots.c_str(), response->makespan());
  return 0;
}

}  // namespace

void AddVerify(CLI::App& app, const Environment& environment, Chosen& chosen) {
  auto* command = app.add_subcommand(
      "verify", "Prove a schedule file, or show its first fault (exit 2)");
  auto flags = std::make_shared<Flags>();
  command->add_option("file", flags->file, "CSV, one row a rank")->required();
  AddShapeFlags(*command, flags->shape);
  command
      ->add_option("--slots", flags->slots,
                   "Receiver slots on every edge; 0: a message waits at its "
                   "sender until it is wanted (default: as computed)")
      ->check(AtLeast(0));
  AnyCoordinator::AddFlag(*command, flags->address);
  command->callback([flags, &environment, &chosen] {
    chosen = [flags, &environment] { return Run(*flags, environment); };
  });
}

}  // namespace penstock::client::commands
