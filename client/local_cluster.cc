#include "client/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/child_log.h"
#include "common/file/file.h"
#include "common/ids/random.h"
#include "common/process/signals.h"
#include "common/rpc/address.h"
#include "common/status/status_macros.h"

namespace penstock::client {
namespace {

namespace fs = std::filesystem;

constexpr char kCoordinator[] = "coordinator";
// How often a wait for the coordinator looks whether it is in vain: the child
// has ended, or the user wants no more of it.
constexpr absl::Duration kLookForEnd = absl::Milliseconds(200);

absl::Status Errno(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// A file in memory, for appending: gone with the last process that has it open.
absl::StatusOr<int> NamelessFile() {
  const int fd = memfd_create("penstock-coordinator.log", MFD_CLOEXEC);
  if (fd < 0) return Errno("cannot make a log in memory");
  if (fcntl(fd, F_SETFL, O_APPEND) != 0) {
    const absl::Status status = Errno("cannot append to a log in memory");
    close(fd);
    return status;
  }
  return fd;
}

absl::Status StoppedAtStart() {
  return absl::CancelledError(
      "told to stop while penstock-coordinator was starting");
}

absl::Status EndedAtStart(const LocalCluster::Ended& ended) {
  return absl::UnavailableError(
      absl::StrCat("penstock-coordinator ended at its start, ",
                   Describe(ended.exit), ": ", ended.last_log_line));
}

// As mkdtemp() chooses it: not taken, and nobody can know it before.
std::string UnusedName() {
  constexpr absl::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  uint64_t number = common::ids::SystemRandom()();
  std::string name = "penstock-";
  for (int i = 0; i < 6; ++i) {
    name += kLetters[number % kLetters.size()];
    number /= kLetters.size();
  }
  return name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const Options& options, absl::Duration limit) {
  // The coordinator makes it, and removes it when this process is killed.
  const fs::path folder = fs::path(options.runtime_directory) / UnusedName();
  std::unique_ptr<LocalCluster> cluster(
      new LocalCluster(options, folder.string()));
  RETURN_IF_ERROR(cluster->StartCoordinator(limit));
  return cluster;
}

absl::Status LocalCluster::StartCoordinator(absl::Duration limit) {
  const auto deadline = options_.clock->Monotonic() + limit;
  ASSIGN_OR_RETURN(coordinator_log_, NamelessFile());
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return Errno("cannot make a pipe");
  const int ready = pipe_ends[0];
  const absl::Cleanup closing_ready = [ready] { close(ready); };
  ASSIGN_OR_RETURN(const common::rpc::Address address,
                   common::rpc::ParseAddress(SocketOf(kCoordinator)));
  {
    // The child alone has this end: the pipe ends with it.
    const int told = pipe_ends[1];
    const absl::Cleanup closing_told = [told] { close(told); };
    RETURN_IF_ERROR(
        Launch(kCoordinator,
               {.program = "penstock-coordinator",
                .arguments = {"--embedded", "--state-dir", folder_, "--listen",
                              address.ToString(), "--ready-fd",
                              absl::StrCat(kPassedDescriptor)},
                .log_fd = coordinator_log_,
                .passed_fd = told}));
  }
  RETURN_IF_ERROR(AwaitCoordinator(ready, deadline));
  // Not before: a channel that found no socket waits before it looks again.
  client_ = CoordinatorClient::Connect({.address = address});
  return AwaitServing(deadline);
}

absl::Status LocalCluster::AwaitServing(common::time::MonotonicTime deadline) {
  while (true) {
    const absl::Duration left = deadline - options_.clock->Monotonic();
    const absl::Status status =
        client_->AwaitServing(std::min(left, kLookForEnd));
    if (status.ok()) return status;
    // gRPC tries again until the deadline, also where nobody is left.
    for (const Ended& ended : ReapAnd(Told::kNobody)) {
      return EndedAtStart(ended);
    }
    if (common::process::StopIsPending()) return StoppedAtStart();
    if (left <= kLookForEnd) return status;
  }
}

absl::Status LocalCluster::AwaitCoordinator(
    int ready, common::time::MonotonicTime deadline) {
  pollfd wanted{.fd = ready, .events = POLLIN};
  while (true) {
    const absl::Duration left =
        std::clamp(deadline - options_.clock->Monotonic(), absl::ZeroDuration(),
                   kLookForEnd);
    const int found = poll(&wanted, 1,
                           static_cast<int>(absl::ToInt64Milliseconds(
                               absl::Ceil(left, absl::Milliseconds(1)))));
    if (found > 0) break;
    if (found < 0 && errno != EINTR) return Errno("poll()");
    if (common::process::StopIsPending()) return StoppedAtStart();
    if (left > absl::ZeroDuration()) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("penstock-coordinator does not serve on ",
                     SocketOf(kCoordinator), ": ", LastLine(coordinator_log_)));
  }
  char byte = 0;
  if (read(ready, &byte, 1) == 1) return absl::OkStatus();
  return EndAtStart(deadline);
}

absl::Status LocalCluster::EndAtStart(common::time::MonotonicTime deadline) {
  // Its descriptors close a moment before it can be reaped.
  absl::Duration left;
  do {
    for (const Ended& ended : ReapAnd(Told::kNobody)) {
      return EndedAtStart(ended);
    }
    if (common::process::StopIsPending()) return StoppedAtStart();
    left = deadline - options_.clock->Monotonic();
  } while (AwaitChildEnd(std::min(left, kLookForEnd)) || left > kLookForEnd);
  return absl::UnavailableError(
      absl::StrCat("penstock-coordinator gave up at its start: ",
                   LastLine(coordinator_log_)));
}

LocalCluster::LocalCluster(const Options& options, std::string folder)
    : options_(options), folder_(std::move(folder)) {}

LocalCluster::~LocalCluster() {
  Stop();
  if (coordinator_log_ >= 0) close(coordinator_log_);
}

std::string LocalCluster::SocketOf(const std::string& name) const {
  return absl::StrCat("unix:", folder_, "/", name, ".sock");
}

absl::Status LocalCluster::Launch(const std::string& name,
                                  ChildCommand command) {
  command.program =
      (fs::path(options_.binary_directory) / command.program).string();
  command.arguments.push_back("--die-with-parent");
  command.arguments.push_back(absl::StrCat(getpid()));
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(command));
  children_.push_back({.name = name, .pid = pid, .log_fd = command.log_fd});
  return absl::OkStatus();
}

absl::Status LocalCluster::StartStages(const StageOptions& options) {
  for (int i = 0; i < options.count; ++i) {
    const std::string name = absl::StrCat("stage-", i);
    const std::string log =
        (fs::path(options.log_directory) / (name + ".log")).string();
    const int fd =
        open(log.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return Errno(absl::StrCat("cannot open ", log));
    const absl::Status launched =
        Launch(name, {.program = "penstock-stage",
                      .arguments = {"--coordinator", SocketOf(kCoordinator),
                                    "--listen", SocketOf(name), "--name", name,
                                    "--device", options.device, "--threads",
                                    absl::StrCat(options.threads)},
                      .log_fd = fd});
    if (!launched.ok()) {
      close(fd);
      return launched;
    }
  }
  return absl::OkStatus();
}

std::vector<LocalCluster::Ended> LocalCluster::Reap() {
  return ReapAnd(Told::kCoordinator);
}

std::vector<LocalCluster::Ended> LocalCluster::ReapAnd(Told told) {
  std::vector<Ended> result;
  while (const std::optional<ChildExit> exit = ReapAny()) {
    const auto child = std::find_if(
        children_.begin(), children_.end(),
        [&exit](const Child& each) { return each.pid == exit->pid; });
    if (child == children_.end()) continue;
    result.push_back({.name = child->name,
                      .exit = *exit,
                      .last_log_line = LastLine(child->log_fd),
                      .trouble = LastTrouble(child->log_fd)});
    if (child->name != kCoordinator) {
      close(child->log_fd);
      if (told == Told::kCoordinator) Report(child->name, *exit);
    }
    children_.erase(child);
  }
  return result;
}

void LocalCluster::Report(const std::string& stage, const ChildExit& exit) {
  if (client_ == nullptr) return;
  v1::ReportStageExitRequest request;
  request.set_stage_name(stage);
  request.set_pid(exit.pid);
  request.set_exit_code(exit.exit_code);
  if (!reports_.has_value()) reports_.emplace();
  reports_->Post([&client = *client_, request] {
    // A coordinator that does not answer learns it from the lease.
    client.ReportStageExit(request).IgnoreError();
  });
}

void LocalCluster::Disconnect() {
  if (client_ != nullptr) client_->CancelCalls();
  reports_.reset();
  client_.reset();
}

absl::Status LocalCluster::SaveCoordinatorLog(const std::string& path) const {
  // Read by its descriptor: the file has no name any more.
  ASSIGN_OR_RETURN(common::file::File to, common::file::File::Create(path));
  char bytes[65536];
  off_t offset = 0;
  ssize_t n = 0;
  while ((n = pread(coordinator_log_, bytes, sizeof(bytes), offset)) > 0) {
    RETURN_IF_ERROR(to.Write(absl::string_view(bytes, static_cast<size_t>(n))));
    offset += n;
  }
  return to.Close();
}

void LocalCluster::EndChildren(Which which, int signal,
                               common::time::MonotonicTime deadline) {
  const auto meant = [which](const Child& child) {
    return which == Which::kAll || child.name != kCoordinator;
  };
  for (const Child& child : children_) {
    if (meant(child)) kill(child.pid, signal);
  }
  do {
    ReapAnd(Told::kNobody);
    if (std::none_of(children_.begin(), children_.end(), meant)) return;
  } while (AwaitChildEnd(deadline - options_.clock->Monotonic()));
}

void LocalCluster::Stop(absl::Duration limit) {
  const auto deadline = options_.clock->Monotonic() + limit;
  EndChildren(Which::kStages, SIGTERM, deadline - limit / 2);
  // A server waits for its connections to close, and gRPC closes ours only in
  // a call: without this the coordinator waits until it gives up.
  Disconnect();
  EndChildren(Which::kAll, SIGTERM, deadline);
  EndChildren(Which::kAll, SIGKILL, deadline + limit);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace penstock::client
