// The verbs of the CLI, and what they share.
//
// Each verb is a file of this folder, VERB.cc, with one function that is
// declared here and adds it with its flags to the parser. Where the user chose
// the verb, parsing sets `chosen` to what runs it. Data go to stdout,
// everything else to stderr.
#ifndef PENSTOCK_CLIENT_COMMANDS_COMMAND_H_
#define PENSTOCK_CLIENT_COMMANDS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/coordinator_client.h"
#include "client/environment.h"
#include "client/local_cluster.h"

namespace penstock::client::commands {

// Returns the process' exit code.
using Chosen = std::function<int()>;

void AddRun(CLI::App& app, const Environment& environment, Chosen& chosen);
void AddSimulate(CLI::App& app, const Environment& environment, Chosen& chosen);
void AddVerify(CLI::App& app, const Environment& environment, Chosen& chosen);
void AddStages(CLI::App& app, const Environment& environment, Chosen& chosen);
void AddHealth(CLI::App& app, const Environment& environment, Chosen& chosen);
void AddVersion(CLI::App& app, Chosen& chosen);

// Prints "penstock: MESSAGE" to stderr and returns the status' exit code.
int Fail(const absl::Status& status);

// "--address", for ConfiguredCoordinator().
void AddAddressFlag(CLI::App& command, std::string& address_flag);

// The coordinator that --address, else $PENSTOCK_ADDRESS names. Unavailable
// ("no cluster configured") where there is none.
absl::StatusOr<std::unique_ptr<CoordinatorClient>> ConfiguredCoordinator(
    const std::string& address_flag, const Environment& environment);

// The one that answers what needs no stage: the configured one, or where none
// is, an embedded one that lives as long as this.
class AnyCoordinator {
 public:
  // "--address", for Find().
  static void AddFlag(CLI::App& command, std::string& address_flag);

  // Errors: ConfiguredCoordinator()'s, EmbeddedCoordinator()'s.
  static absl::StatusOr<AnyCoordinator> Find(const std::string& address_flag,
                                             const Environment& environment);

  CoordinatorClient& client() {
    return embedded_ != nullptr ? embedded_->client() : *configured_;
  }

 private:
  std::unique_ptr<CoordinatorClient> configured_;
  std::unique_ptr<LocalCluster> embedded_;
};

// A coordinator of our own, without stages yet.
absl::StatusOr<std::unique_ptr<LocalCluster>> EmbeddedCoordinator(
    const Environment& environment);

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_COMMAND_H_
