#include "client/commands/run_request.h"

#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/arguments.h"
#include "client/input_file.h"
#include "client/run_directory.h"
#include "common/status/status_macros.h"

namespace penstock::client::commands {
namespace {

namespace fs = std::filesystem;

// The job file's.
absl::StatusOr<std::string> BaseDirectory(const RunFlags& flags,
                                          const Environment& environment) {
  const fs::path file = flags.job_file;
  if (environment.working_directory.empty() &&
      (file.is_relative() || fs::path(flags.run_directory).is_relative())) {
    return absl::InvalidArgumentError(
        "the working directory does not exist any more; go to another, or "
        "give the job file and --run-dir as absolute paths");
  }
  std::string base =
      (fs::path(environment.working_directory) / file).parent_path().string();
  for (const std::string& path : {environment.working_directory, base}) {
    RETURN_IF_ERROR(CheckUtf8("the working directory", path));
  }
  return base;
}

}  // namespace

absl::StatusOr<v1::CreateJobRequest> MakeRunRequest(
    const RunFlags& flags, const Environment& environment) {
  v1::CreateJobRequest request;
  ASSIGN_OR_RETURN(*request.mutable_file(), ReadJobFile(flags.job_file));
  if (!flags.run_directory.empty()) {
    RETURN_IF_ERROR(CheckFresh(flags.run_directory));
  }
  request.set_file_name(flags.job_file);
  for (const std::string& override : flags.overrides) {
    request.add_overrides(override);
  }
  if (flags.stages != 0) {
    v1::FlagOverride& stages = *request.add_flag_overrides();
    stages.set_flag("--stages");
    stages.set_setting(absl::StrCat("pipeline.stages=", flags.stages));
  }
  ASSIGN_OR_RETURN(*request.mutable_base_directory(),
                   BaseDirectory(flags, environment));
  return request;
}

}  // namespace penstock::client::commands
