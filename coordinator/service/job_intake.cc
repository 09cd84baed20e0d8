#include "coordinator/service/job_intake.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestSmallFile = 1 << 20;

// A regular file of at most kLargestSmallFile bytes.
absl::StatusOr<std::string> ReadSmallFile(const fs::path& path) {
  std::error_code error;
  const fs::file_status info = fs::status(path, error);
  if (!fs::exists(info)) {
    return absl::NotFoundError(absl::StrCat(path.string(), " does not exist"));
  }
  if (!fs::is_regular_file(info)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is no regular file"));
  }
  const auto size = fs::file_size(path, error);
  if (error || size > kLargestSmallFile) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.string(), " has more than ", kLargestSmallFile, " bytes"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  if (!file.good() && !file.eof()) {
    return absl::PermissionDeniedError(
        absl::StrCat(path.string(), " cannot be read"));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<dispatch::NewJob> JobIntake::Read(
    const v1::CreateJobRequest& request) const {
  if (mode_ == Mode::kDeployed &&
      !(request.base_directory().empty() && request.run_directory().empty())) {
    return absl::InvalidArgumentError(
        "base_directory and run_directory are for the embedded cluster of "
        "`penstock run`; a deployed coordinator keeps results in its own "
        "state folder");
  }
  const fs::path base(request.base_directory());
  const auto absolute = [&base](const std::string& path) {
    return path.empty() ? path : (base / path).lexically_normal().string();
  };

  spec::ParseOptions options;
  options.overrides = {request.overrides().begin(), request.overrides().end()};
  options.read_config_json = [&](absl::string_view folder) {
    return ReadSmallFile(base / std::string(folder) / "config.json");
  };
  spec::ParsedJob parsed =
      spec::ParseJob(request.file(), request.file_name(), options);
  RETURN_IF_ERROR(parsed.status());

  dispatch::NewJob job;
  job.request = request;
  job.spec = std::move(parsed.spec);
  job.notes = std::move(parsed.notes);
  std::vector<spec::Violation> violations;
  spec::JobSpec& spec = job.spec;
  if (mode_ == Mode::kDeployed) {
    for (const auto& [key, path] :
         {std::pair<std::string, std::string>("data.train", spec.data.train),
          {"model.from", spec.model.from}}) {
      if (path.empty()) continue;
      violations.push_back(
          {key, absl::StrCat("'", path,
                             "' is no ROOT:path, and this coordinator has no "
                             "roots; run the job with `penstock run`")});
    }
  }
  spec.data.train = absolute(spec.data.train);
  spec.model.from = absolute(spec.model.from);
  if (spec.data.validation.has_value()) {
    spec.data.validation->path = absolute(spec.data.validation->path);
  }
  if (spec.pipeline.schedule == spec::ScheduleKind::kFile) {
    spec.pipeline.schedule_file = absolute(spec.pipeline.schedule_file);
    absl::StatusOr<std::string> text =
        ReadSmallFile(spec.pipeline.schedule_file);
    if (text.ok()) {
      job.schedule_text = *std::move(text);
    } else {
      violations.push_back(
          {"pipeline.schedule", std::string(text.status().message())});
    }
  }
  RETURN_IF_ERROR(spec::ToStatus(violations, parsed.positions));
  job.positions = std::move(parsed.positions);
  return job;
}

}  // namespace penstock::coordinator::service
