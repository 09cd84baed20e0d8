// What `penstock run` was asked for, and the request that it makes of that.
#ifndef PENSTOCK_CLIENT_COMMANDS_RUN_REQUEST_H_
#define PENSTOCK_CLIENT_COMMANDS_RUN_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/environment.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client::commands {

struct RunFlags {
  std::string job_file;
  int stages = 0;                      // 0: as the job file says.
  std::string run_directory;           // "": runs/NAME-YYYYmmdd-HHMMSS
  std::vector<std::string> overrides;  // key=value.
  std::string format = "table";        // Or json.
  std::string progress = "auto";       // Or plain, none.
};

// The job file's bytes, its overrides, and the folder that its paths start
// from; no run directory yet. InvalidArgument: the file cannot be read, the run
// directory is not fresh, or the working directory is needed and gone.
absl::StatusOr<v1::CreateJobRequest> MakeRunRequest(
    const RunFlags& flags, const Environment& environment);

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_RUN_REQUEST_H_
