// How much memory a process of this machine may use.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_MEMORY_LIMIT_H_
#define PENSTOCK_SERVER_DEVICE_HOST_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace penstock::server::device::host {

struct MemoryLimit {
  int64_t bytes = 0;
  // Path of the control group whose limit it is; empty: the machine's memory.
  std::string group;
};

struct MemoryLimitOptions {
  int64_t machine_bytes = 0;
  std::string groups = "/proc/self/cgroup";  // The groups of this process.
  std::string mount = "/sys/fs/cgroup";
};

// The machine's memory, or the lowest limit below it of the process's control
// groups (v2 and v1) and of the groups that these are in. What cannot be read
// limits nothing.
MemoryLimit FindMemoryLimit(const MemoryLimitOptions& options);
// Of this process.
MemoryLimit FindMemoryLimit();

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_MEMORY_LIMIT_H_
