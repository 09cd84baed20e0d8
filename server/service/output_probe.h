// Shows that this stage can write where the job's results go, and that this is
// where the coordinator looks for them.
#ifndef PENSTOCK_SERVER_SERVICE_OUTPUT_PROBE_H_
#define PENSTOCK_SERVER_SERVICE_OUTPUT_PROBE_H_

#include <string>

#include "penstock/v1/coordination_service.pb.h"

namespace penstock::server::service {

// Writes the file that is asked for, durably, into a folder that must be there.
// A failure has common/status/file_error.h's reasons. Blocks on the file
// system.
v1::OutputProbed ProbeOutput(const v1::ProbeOutput& request,
                             const std::string& stage_name);

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_OUTPUT_PROBE_H_
