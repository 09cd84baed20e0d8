// Asks whether anybody listens on a stage's monitor port: the quick sign that
// a stage whose session broke is really gone.
#ifndef PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_
#define PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_

#include <string>

#include "common/time/clock.h"

namespace penstock::coordinator::service {

enum class ProbeResult { kListening, kRefused, kUnknown };

// Blocks for at most 200 ms an address of the host, and until `until` where
// somebody listens: a process that dies closes one socket after the other, and
// this one may go after the session's. kRefused only when the kernel of the
// address' host says that nobody listens (also: the Unix socket's file is
// gone); kUnknown for everything else, also for a host by name, "localhost"
// aside: to look one up may take longer than all evidence counts.
ProbeResult Probe(const std::string& address, const common::time::Clock& clock,
                  common::time::MonotonicTime until);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_
