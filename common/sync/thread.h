// Starting a thread where the system may have none left: limits of users and
// control groups, or memory.
#ifndef PENSTOCK_COMMON_SYNC_THREAD_H_
#define PENSTOCK_COMMON_SYNC_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace penstock::common::sync {

// A thread that runs `run`; whoever has it joins it. ResourceExhausted, reason
// OUT_OF_MEMORY, where the system refuses it. For threads of which a job can
// want too many; those that a daemon starts with may be plain std::thread.
absl::StatusOr<std::thread> StartThread(std::function<void()> run);

}  // namespace penstock::common::sync

#endif  // PENSTOCK_COMMON_SYNC_THREAD_H_
