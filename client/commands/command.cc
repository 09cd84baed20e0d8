#include "client/commands/command.h"

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "client/exit_code.h"
#include "client/json_output.h"
#include "common/rpc/address.h"
#include "common/status/status_macros.h"

namespace penstock::client::commands {
namespace {

constexpr absl::Duration kConnectLimit = absl::Seconds(5);
constexpr absl::Duration kCoordinatorStart = absl::Seconds(10);

}  // namespace

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "penstock: %s\n", Printable(status.message()).c_str());
  return ExitCodeOf(status);
}

void AddAddressFlag(CLI::App& command, std::string& address_flag) {
  command.add_option("--address", address_flag,
                     "unix:PATH or HOST:PORT of a coordinator (default "
                     "PENSTOCK_ADDRESS)");
}

absl::StatusOr<std::unique_ptr<CoordinatorClient>> ConfiguredCoordinator(
    const std::string& address_flag, const Environment& environment) {
  const std::string& text =
      address_flag.empty() ? environment.address : address_flag;
  if (text.empty()) {
    return absl::UnavailableError(
        "no cluster configured: give --address or set PENSTOCK_ADDRESS "
        "(unix:PATH or HOST:PORT of a penstock-coordinator)");
  }
  ASSIGN_OR_RETURN(const common::rpc::Address address,
                   common::rpc::ParseAddress(text));
  auto client = CoordinatorClient::Connect({.address = address});
  RETURN_IF_ERROR(client->AwaitServing(kConnectLimit));
  return client;
}

void AnyCoordinator::AddFlag(CLI::App& command, std::string& address_flag) {
  command.add_option(
      "--address", address_flag,
      "unix:PATH or HOST:PORT of a coordinator; without one, and "
      "without PENSTOCK_ADDRESS, an embedded one answers");
}

absl::StatusOr<AnyCoordinator> AnyCoordinator::Find(
    const std::string& address_flag, const Environment& environment) {
  AnyCoordinator any;
  if (address_flag.empty() && environment.address.empty()) {
    ASSIGN_OR_RETURN(any.embedded_, EmbeddedCoordinator(environment));
  } else {
    ASSIGN_OR_RETURN(any.configured_,
                     ConfiguredCoordinator(address_flag, environment));
  }
  return any;
}

absl::StatusOr<std::unique_ptr<LocalCluster>> EmbeddedCoordinator(
    const Environment& environment) {
  return LocalCluster::Start(
      {.binary_directory = environment.binary_directory,
       .runtime_directory = environment.runtime_directory,
       .clock = &environment.clock},
      kCoordinatorStart);
}

}  // namespace penstock::client::commands
