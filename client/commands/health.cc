// `penstock health`: whether the coordinator serves.
#include <cstdio>
#include <memory>
#include <string>

#include "client/commands/command.h"
#include "client/exit_code.h"

namespace penstock::client::commands {
namespace {

int Run(const std::string& address, const std::string& service,
        const Environment& environment) {
  const auto client = ConfiguredCoordinator(address, environment);
  if (!client.ok()) return Fail(client.status());
  const auto health = (*client)->Health(service);
  if (!health.ok()) return Fail(health.status());
  std::printf("%s\n", health->c_str());
  return *health == "SERVING" ? kDone : kJobFailed;
}

}  // namespace

void AddHealth(CLI::App& app, const Environment& environment, Chosen& chosen) {
  auto* command = app.add_subcommand(
      "health", "Ask a coordinator whether it serves (exit 1: it does not)");
  auto address = std::make_shared<std::string>();
  auto service = std::make_shared<std::string>("readiness");
  AddAddressFlag(*command, *address);
  command->add_option("service", *service, "readiness, liveness, or \"\"")
      ->capture_default_str();
  command->callback([=, &environment, &chosen] {
    chosen = [=, &environment] { return Run(*address, *service, environment); };
  });
}

}  // namespace penstock::client::commands
