// penstock-stage: parses flags, starts a StageDaemon, waits for signals.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/process/build_info.h"
#include "common/process/daemon.h"
#include "common/process/descriptors.h"
#include "common/process/host_name.h"
#include "common/process/signals.h"
#include "common/process/start.h"
#include "common/rpc/address.h"
#include "common/rpc/listen_flags.h"
#include "common/sync/mutex.h"
#include "server/data_interface.h"
#include "server/stage_daemon.h"

namespace {

using penstock::common::process::kBadConfiguration;
using penstock::common::process::kBuild;
using penstock::common::process::kVersion;
using penstock::server::StageDaemon;

constexpr absl::Duration kStopLimit = absl::Seconds(3);
constexpr int kRestartMe = 1;
constexpr int kMostThreads = 1024;  // As of threads_per_stage in job files.

struct Flags {
  std::string coordinator = "unix:/run/penstock/coordinator.sock";
  penstock::common::rpc::ListenFlags listen{
      .listen = "unix:/run/penstock/stage-0.sock"};
  std::string data_interface;
  std::string name;
  std::string pool = "default";
  std::string device = "cpu";
  std::string cpu_isa;
  int threads = 0;
  penstock::common::process::DaemonFlags daemon;
};

int Fail(const absl::Status& status) {
  return penstock::common::process::Refuse("penstock-stage", status);
}

// HOSTNAME-DEVICE, as a stage name may be: "cuda:0" has no colon in it.
std::string DefaultName(const std::string& host, const std::string& device) {
  std::string name = absl::StrCat(host, "-", absl::AsciiStrToLower(device));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.') c = '-';
  }
  return name;
}

// Filled by the daemon when it ends by itself.
struct Ending {
  penstock::common::sync::Mutex mutex;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  StageDaemon::End end ABSL_GUARDED_BY(mutex);
};

}  // namespace

int main(int argc, char** argv) {
  namespace process = penstock::common::process;
  namespace rpc = penstock::common::rpc;
  if (const absl::Status open = process::OpenStandardDescriptors();
      !open.ok()) {
    return Fail(open);
  }
  Flags flags;
  CLI::App app(
      "Holds one rank's share of a model's layers and executes the "
      "coordinator's commands.",
      "penstock-stage");
  app.add_option("--coordinator", flags.coordinator,
                 "unix:PATH or HOST:PORT of penstock-coordinator")
      ->capture_default_str();
  rpc::AddListenFlags(app, "monitors", flags.listen);
  app.add_option("--data-interface", flags.data_interface,
                 "Numeric address of the interface that data travel on "
                 "(default: the one that leads to the coordinator; 127.0.0.1 "
                 "where that is on a Unix socket)");
  app.add_option("--name", flags.name, "Unique name (default HOSTNAME-DEVICE)");
  app.add_option("--pool", flags.pool, "Jobs choose stages of one pool")
      ->capture_default_str();
  app.add_option("--device", flags.device, "cpu, reference or virtual")
      ->capture_default_str();
  app.add_option("--cpu-isa", flags.cpu_isa,
                 "Highest ISA level of the cpu: sse4, avx2 or avx512");
  app.add_option("--threads", flags.threads,
                 "Compute threads of jobs with threads_per_stage: auto "
                 "(0: all cores)")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
  process::AddDaemonFlags(app, flags.daemon);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfiguration;
  }

  const std::string host = process::HostName();
  if (flags.name.empty()) flags.name = DefaultName(host, flags.device);
  if (const absl::Status begun = process::BeginDaemon(flags.name, flags.daemon);
      !begun.ok()) {
    return Fail(begun);
  }
  const auto coordinator = rpc::ParseAddress(flags.coordinator);
  if (!coordinator.ok()) return Fail(coordinator.status());
  const auto listen = rpc::ParseListen(flags.listen);
  if (!listen.ok()) return Fail(listen.status());

  if (flags.data_interface.empty()) {
    absl::StatusOr<std::string> found;
    process::StartHearingSignals(
        [&found, &coordinator] {
          found = penstock::server::InterfaceTowards(*coordinator);
        },
        kStopLimit);
    if (!found.ok()) {
      // The network may come up: whoever started this should do it again.
      Fail(found.status());
      return kRestartMe;
    }
    flags.data_interface = *std::move(found);
  }
  if (const absl::Status one =
          penstock::server::CheckOneInterface(flags.data_interface);
      !one.ok()) {
    return Fail(one);
  }

  penstock::v1::BuildInfo build;
  build.set_version(kVersion);
  build.set_build(kBuild);
  Ending ending;
  const StageDaemon::Options options{.coordinator = *coordinator,
                                     .listen = *listen,
                                     .data_address = flags.data_interface,
                                     .name = flags.name,
                                     .pool = flags.pool,
                                     .device = flags.device,
                                     .cpu_isa = flags.cpu_isa,
                                     .threads = flags.threads,
                                     .host = host,
                                     .build = build};
  const auto on_end = [&ending](const StageDaemon::End& end) {
    {
      penstock::common::sync::MutexLock lock(&ending.mutex);
      ending.ended = true;
      ending.end = end;
    }
    kill(getpid(), SIGCHLD);  // Wakes main.
  };
  absl::StatusOr<std::unique_ptr<StageDaemon>> daemon;
  process::StartHearingSignals(
      [&daemon, &options, &on_end] {
        daemon = StageDaemon::Start(options, on_end);
      },
      kStopLimit);
  if (!daemon.ok()) return Fail(daemon.status());

  int signals = 0;
  while (true) {
    const auto signal = process::WaitForSignal(absl::InfiniteDuration());
    if (signal == SIGTERM || signal == SIGINT) {
      if (++signals > 1) _exit(128 + *signal);  // The second one: now.
      process::EndWithin(kStopLimit);
      (*daemon)->Stop();
    }
    penstock::common::sync::MutexLock lock(&ending.mutex);
    if (ending.ended) break;
  }
  // After a signal the time runs already.
  if (signals == 0) process::EndWithin(kStopLimit);
  daemon->reset();
  penstock::common::sync::MutexLock lock(&ending.mutex);
  if (!ending.end.status.ok()) {
    std::fprintf(stderr, "penstock-stage: %s\n",
                 std::string(ending.end.status.message()).c_str());
  }
  return ending.end.exit_code;
}
