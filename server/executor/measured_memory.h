// What a device has given, in the words of the wire.
#ifndef PENSTOCK_SERVER_EXECUTOR_MEASURED_MEMORY_H_
#define PENSTOCK_SERVER_EXECUTOR_MEASURED_MEMORY_H_

#include "penstock/v1/coordination_service.pb.h"
#include "server/device/memory_usage.h"

namespace penstock::server::executor {

// The most that was held of each use so far; what the plan predicted, as long
// as nothing else is allocated. Pinned host memory is not in it.
v1::MemoryBytes PeakMemory(const device::MemoryUsage& usage);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_MEASURED_MEMORY_H_
