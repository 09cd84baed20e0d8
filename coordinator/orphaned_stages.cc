#include "coordinator/orphaned_stages.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <system_error>

#include "common/file/folder.h"

namespace penstock::coordinator {
namespace {

std::vector<std::string> CommandLine(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) {
    arguments.push_back(argument);
  }
  return arguments;
}

bool HasFlag(const std::vector<std::string>& arguments, const std::string& flag,
             const std::string& value) {
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == flag && arguments[i + 1] == value) return true;
  }
  return false;
}

bool Ended(int pidfd) {
  pollfd entry = {.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

OrphanedStages::OrphanedStages(const std::string& address, pid_t parent) {
  std::error_code ignored;
  for (const auto& entry : common::file::ListFolder("/proc", ignored)) {
    const std::string pid = entry.path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; })) {
      continue;
    }
    // First the handle, then the look: what is looked at is what is held, or
    // the held one has ended.
    const int pidfd =
        static_cast<int>(syscall(SYS_pidfd_open, std::stoi(pid), 0));
    if (pidfd < 0) continue;
    const std::vector<std::string> arguments = CommandLine(pid);
    if (HasFlag(arguments, "--coordinator", address) &&
        HasFlag(arguments, "--die-with-parent", std::to_string(parent))) {
      pidfds_.push_back(pidfd);
    } else {
      close(pidfd);
    }
  }
}

OrphanedStages::~OrphanedStages() {
  for (const int pidfd : pidfds_) close(pidfd);
}

void OrphanedStages::Signal(int signal) const {
  for (const int pidfd : pidfds_) {
    syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
  }
}

bool OrphanedStages::AnyAlive() const {
  return std::any_of(pidfds_.begin(), pidfds_.end(),
                     [](int pidfd) { return !Ended(pidfd); });
}

}  // namespace penstock::coordinator
