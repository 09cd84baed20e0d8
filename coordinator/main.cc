// penstock-coordinator: parses flags, starts a Coordinator, waits for signals.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/process/build_info.h"
#include "common/process/daemon.h"
#include "common/process/descriptors.h"
#include "common/process/host_name.h"
#include "common/process/signals.h"
#include "common/process/start.h"
#include "common/rpc/address.h"
#include "common/rpc/listen_flags.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "coordinator/coordinator.h"
#include "coordinator/orphaned_stages.h"
#include "coordinator/socket_folder.h"
#include "coordinator/state_folder.h"

namespace {

namespace fs = std::filesystem;
namespace process = penstock::common::process;
using penstock::common::process::kBadConfiguration;
using penstock::common::sync::Notification;
using penstock::coordinator::Coordinator;
using penstock::coordinator::MakeSocketFolder;
using penstock::coordinator::OrphanedStages;
using penstock::coordinator::RemoveSocketFolder;

constexpr absl::Duration kStopLimit = absl::Seconds(3);
// For stages whose `penstock run` has died, until they are killed.
constexpr absl::Duration kOrphanLimit = absl::Seconds(3);
constexpr absl::Duration kOrphanPoll = absl::Milliseconds(20);
// For threads whose work nobody waits for, once everything else has ended.
constexpr absl::Duration kAbandonLimit = absl::Milliseconds(200);
// Commands of this many steps are a lot for the stages to keep.
constexpr int kLargestWindow = 1000;

struct Flags {
  penstock::common::rpc::ListenFlags listen{
      .listen = "unix:/run/penstock/coordinator.sock"};
  std::string state_dir = "/var/lib/penstock";
  std::string lease = "10s";
  std::string heartbeat = "1s";
  int window = 2;
  bool embedded = false;
  process::DaemonFlags daemon;
  int ready_fd = -1;
};

absl::StatusOr<absl::Duration> ParseInterval(absl::string_view flag,
                                             const std::string& text) {
  absl::Duration interval;
  if (!absl::ParseDuration(text, &interval) ||
      interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " '", text, "' is no duration, as 10s"));
  }
  // So that whatever waits for it ends.
  constexpr absl::Duration kLongest = absl::Hours(1);
  if (interval > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is ", text, "; it must be at most ",
                     absl::FormatDuration(kLongest)));
  }
  return interval;
}

void TellReady(int fd) {
  if (write(fd, "\n", 1) != 1) LOG(WARNING) << "nobody waits on " << fd;
  close(fd);
}

bool ParentEnded(const Flags& flags) {
  return flags.daemon.die_with_parent != 0 &&
         getppid() != flags.daemon.die_with_parent;
}

// Until the coordinator has stopped. A second signal ends the process at once.
void AwaitStop(const Notification& stopped,
               const std::optional<fs::path>& socket_folder) {
  while (!stopped.HasBeenNotified()) {
    const auto signal = process::WaitForSignal(absl::InfiniteDuration());
    if (signal != SIGTERM && signal != SIGINT) continue;
    if (socket_folder.has_value()) RemoveSocketFolder(*socket_folder);
    _exit(128 + *signal);
  }
}

// Until the coordinator has stopped and, where its `penstock run` has died,
// what is left of the stages. Signals to stop say nothing new: the kernel sends
// one for each thread of a dying parent, before getppid() tells that it is
// gone.
void AwaitStopAndOrphans(const Notification& stopped, const Flags& flags,
                         const penstock::common::rpc::Address& address) {
  const penstock::common::time::RealClock clock;
  std::optional<OrphanedStages> orphans;
  auto kill_at = penstock::common::time::MonotonicTime::Infinite();
  while (true) {
    if (!orphans.has_value() && ParentEnded(flags)) {
      process::EndWithin(kOrphanLimit + absl::Seconds(1));
      kill_at = clock.Monotonic() + kOrphanLimit;
      orphans.emplace(address.ToString(), flags.daemon.die_with_parent);
      // To a stopped one the kernel's SIGTERM has not come yet.
      orphans->Signal(SIGCONT);
    }
    const bool alone = !orphans.has_value() || !orphans->AnyAlive();
    if (stopped.HasBeenNotified() && alone) return;
    if (clock.Monotonic() >= kill_at) orphans->Signal(SIGKILL);
    process::WaitForSignal(alone ? absl::InfiniteDuration() : kOrphanPoll);
  }
}

// Ends the jobs, stops the coordinator and what hangs on it; returns the exit
// code.
int End(std::unique_ptr<Coordinator> coordinator, int told, const Flags& flags,
        const penstock::common::rpc::Address& address,
        const std::optional<fs::path>& socket_folder) {
  process::EndWithin(kStopLimit);
  Notification stopped, gone;
  std::thread stopping([&] {
    coordinator->EndJobs(absl::StrCat("the coordinator was told to end by ",
                                      told == SIGINT ? "SIGINT" : "SIGTERM"));
    // Whatever may hang from here on.
    if (socket_folder.has_value()) RemoveSocketFolder(*socket_folder);
    coordinator->Stop();
    stopped.Notify();
    kill(getpid(), SIGCHLD);  // Wakes main.
    coordinator.reset();
    gone.Notify();
  });
  if (flags.daemon.die_with_parent != 0) {
    AwaitStopAndOrphans(stopped, flags, address);
  } else {
    AwaitStop(stopped, socket_folder);
  }
  if (socket_folder.has_value()) RemoveSocketFolder(*socket_folder);
  // A schedule that is being simulated, or a disk that hangs, is left alone.
  if (!gone.WaitForNotificationWithTimeout(kAbandonLimit)) _exit(0);
  stopping.join();
  return 0;
}

void AddFlags(CLI::App& app, Flags& flags) {
  penstock::common::rpc::AddListenFlags(app, "clients and stages",
                                        flags.listen);
  app.add_option("--state-dir", flags.state_dir,
                 "Folder of jobs' results, and of the count of starts")
      ->capture_default_str();
  app.add_option("--lease", flags.lease,
                 "A stage that is silent for this long is lost")
      ->capture_default_str();
  app.add_option("--heartbeat", flags.heartbeat,
                 "How often stages say that they live; at most a fifth of "
                 "--lease")
      ->capture_default_str();
  app.add_option("--window", flags.window,
                 "Steps whose commands are sent to the stages ahead of the "
                 "newest committed one")
      ->check(CLI::Range(1, kLargestWindow))
      ->capture_default_str();
  app.add_flag("--embedded", flags.embedded,
               "Serve one `penstock run` on this machine: requests name "
               "folders, and the socket's folder is made, and removed at the "
               "end");
  app.add_option("--ready-fd", flags.ready_fd,
                 "Write a byte to this descriptor when serving, and close it");
  process::AddDaemonFlags(app, flags.daemon);
}

int Fail(const absl::Status& status) {
  return process::Refuse("penstock-coordinator", status);
}

}  // namespace

int main(int argc, char** argv) {
  namespace rpc = penstock::common::rpc;
  if (const absl::Status open = process::OpenStandardDescriptors();
      !open.ok()) {
    return Fail(open);
  }
  Flags flags;
  CLI::App app("Plans training jobs and drives stage daemons over gRPC.",
               "penstock-coordinator");
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadConfiguration;
  }

  if (const absl::Status begun =
          process::BeginDaemon("coordinator", flags.daemon);
      !begun.ok()) {
    return Fail(begun);
  }
  const auto address = rpc::ParseListen(flags.listen);
  if (!address.ok()) return Fail(address.status());
  const auto lease = ParseInterval("--lease", flags.lease);
  if (!lease.ok()) return Fail(lease.status());
  const auto heartbeat = ParseInterval("--heartbeat", flags.heartbeat);
  if (!heartbeat.ok()) return Fail(heartbeat.status());

  // Of a `penstock run` every job has a folder of its own.
  std::optional<penstock::coordinator::StateFolder> state;
  int64_t term = 1;
  if (!flags.embedded) {
    auto opened = penstock::coordinator::StateFolder::Open(flags.state_dir);
    if (!opened.ok()) return Fail(opened.status());
    state = *std::move(opened);
    flags.state_dir = state->path();
    const auto next = state->NextTerm();
    if (!next.ok()) return Fail(next.status());
    term = *next;
  }
  std::optional<fs::path> socket_folder;
  if (flags.embedded && address->kind == rpc::AddressKind::kUnix) {
    socket_folder = fs::path(address->path).parent_path();
    const absl::Status made = MakeSocketFolder(*socket_folder);
    if (!made.ok()) return Fail(made);
  }
  penstock::v1::BuildInfo build;
  build.set_version(process::kVersion);
  build.set_build(process::kBuild);
  const Coordinator::Options options{.listen = *address,
                                     .state_directory = flags.state_dir,
                                     .term = term,
                                     .embedded = flags.embedded,
                                     .lease = *lease,
                                     .heartbeat = *heartbeat,
                                     .window = flags.window,
                                     .host = process::HostName(),
                                     .build = build};
  absl::StatusOr<std::unique_ptr<Coordinator>> coordinator;
  const auto start = [&coordinator, &options] {
    coordinator = Coordinator::Start(options);
  };
  if (socket_folder.has_value()) {
    // Nobody is asked for a name. And where its `penstock run` dies now, the
    // kernel's second signal (above) must not end it before the folder is gone.
    start();
  } else {
    process::StartHearingSignals(start, kStopLimit);
  }
  if (!coordinator.ok()) {
    if (socket_folder.has_value()) RemoveSocketFolder(*socket_folder);
    return Fail(coordinator.status());
  }
  LOG(INFO) << "serving on " << (*coordinator)->address().ToString()
            << ", term " << term;
  if (flags.ready_fd >= 0) TellReady(flags.ready_fd);

  while (true) {
    const auto signal = process::WaitForSignal(absl::InfiniteDuration());
    if (signal != SIGTERM && signal != SIGINT) continue;
    return End(*std::move(coordinator), *signal, flags, *address,
               socket_folder);
  }
}
