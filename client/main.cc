// penstock: the command line. Reads environment and flags, runs one verb.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/arguments.h"
#include "client/commands/command.h"
#include "client/environment.h"
#include "client/exit_code.h"
#include "client/runtime_directory.h"
#include "common/process/daemon.h"
#include "common/process/descriptors.h"
#include "common/process/signals.h"
#include "common/time/real_clock.h"

namespace {

std::string Variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

penstock::client::Environment ReadEnvironment(
    const penstock::common::time::Clock& clock) {
  namespace fs = std::filesystem;
  std::error_code error;
  penstock::client::Environment environment{.clock = clock};
  environment.binary_directory =
      fs::read_symlink("/proc/self/exe", error).parent_path().string();
  environment.runtime_directory = penstock::client::RuntimeDirectory(
      {Variable("XDG_RUNTIME_DIR", ""), fs::temp_directory_path(error).string(),
       "/tmp"});
  environment.working_directory = fs::current_path(error).string();
  environment.address = Variable("PENSTOCK_ADDRESS", "");
  environment.cores =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  environment.stderr_is_terminal =
      isatty(STDERR_FILENO) == 1 && Variable("TERM", "dumb") != "dumb";
  environment.stderr_columns = [] {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  };
  return environment;
}

// The exit code where output has to arrive.
int AfterOutput(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "penstock: standard output is not complete: %s\n",
               errno != 0 ? std::strerror(errno) : "it could not be written");
  return code == penstock::client::kDone ? penstock::client::kJobFailed : code;
}

std::vector<std::string> Verbs(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
  }
  return verbs;
}

// The exit code; exceptions of the standard library pass.
int Main(int argc, char** argv) {
  namespace commands = penstock::client::commands;
  namespace process = penstock::common::process;
  if (const absl::Status open = process::OpenStandardDescriptors();
      !open.ok()) {
    return commands::Fail(open);
  }
  // A verb that has more to end than itself blocks the others: `run`.
  process::BlockChildSignal();
  if (const absl::Status enough = process::RaiseDescriptorLimit();
      !enough.ok()) {
    return commands::Fail(enough);
  }
  const penstock::common::time::RealClock clock;
  const penstock::client::Environment environment = ReadEnvironment(clock);

  CLI::App app(
      "Pipeline-parallel training of transformer models, exact at every "
      "depth.\n\nExample: penstock run job.yaml --stages 4",
      "penstock");
  app.set_version_flag("--version", process::VersionText("penstock"));
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const absl::Status status = penstock::client::CheckArguments(arguments);
      !status.ok()) {
    return commands::Fail(status);
  }
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* of, const CLI::Error& error) {
    return absl::StrCat("penstock: ", CLI::FailureMessage::simple(of, error));
  });
  commands::Chosen chosen;
  commands::AddRun(app, environment, chosen);
  commands::AddSimulate(app, environment, chosen);
  commands::AddVerify(app, environment, chosen);
  commands::AddStages(app, environment, chosen);
  commands::AddHealth(app, environment, chosen);
  commands::AddVersion(app, chosen);
  if (const absl::Status status =
          penstock::client::CheckVerb(arguments, Verbs(app));
      !status.ok()) {
    return commands::Fail(status);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version are output too.
    return app.exit(error) == 0 ? AfterOutput(penstock::client::kDone)
                                : penstock::client::kUsage;
  }
  return AfterOutput(chosen());
}

}  // namespace

int main(int argc, char** argv) {
  // What the language itself throws (no memory, no thread): everything that was
  // started has been ended on the way here.
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: ended by an unexpected fault: %s\n",
                 error.what());
    return penstock::client::kInternal;
  }
}
