// Asks whether anybody listens on a stage's monitor port: the quick sign that
// a stage whose session broke is really gone.
#ifndef PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_
#define PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_

#include <string>

namespace penstock::coordinator::service {

enum class ProbeResult { kListening, kRefused, kUnknown };

// One connect, blocking for at most 200 ms. kRefused only when the kernel of
// the address' host says that nobody listens (also: the Unix socket's file is
// gone); kUnknown for everything else.
ProbeResult Probe(const std::string& address);

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_MONITOR_PROBE_H_
