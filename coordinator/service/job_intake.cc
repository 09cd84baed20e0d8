#include "coordinator/service/job_intake.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/file/file.h"
#include "common/file/folder.h"
#include "common/ids/result_names.h"
#include "common/status/file_error.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "coordinator/schedule/text.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/paths.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;
namespace ids = common::ids;

// Why a deployed coordinator takes no path.
std::string NoRoots(absl::string_view path) {
  return absl::StrCat("'", path,
                      "' is no ROOT:path, and this coordinator has no roots; "
                      "run the job with `penstock run`");
}

// What a job writes to its run directory, beside logs.
bool IsResult(absl::string_view name) {
  for (const absl::string_view result :
       {ids::kResolvedJobFile, ids::kEventsFile, ids::kMetricsFile,
        ids::kSummaryFile, ids::kTraceFile, ids::kPredictedFile,
        ids::kProfileFile, ids::kModelFolder}) {
    if (name == result) return true;
  }
  return absl::StartsWith(name, ids::kUnfinishedModel);
}

// Why the results of another job cannot go to `folder`.
absl::Status CheckFree(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return absl::OkStatus();
  for (const auto& entry : common::file::ListFolder(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!IsResult(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "run_directory ", common::text::Quoted(folder.string()), " holds ",
        name, " of another job; give a folder without results"));
  }
  if (!error) return absl::OkStatus();
  return common::status::FileError(
      error.value(),
      absl::StrCat("run_directory ", common::text::Quoted(folder.string())));
}

// A flag goes into messages as it is.
absl::Status CheckFlag(absl::string_view flag) {
  constexpr size_t kMostBytes = 64;
  absl::string_view name = flag;
  bool good = absl::ConsumePrefix(&name, "--") && !name.empty() &&
              flag.size() <= kMostBytes;
  for (const char c : name) {
    good &= absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag_overrides: flag ", common::text::Quoted(flag),
                   " is none; expected -- and at most ", kMostBytes - 2,
                   " of [a-z0-9-], such as --stages"));
}

absl::Status CheckAbsolute(absl::string_view field, const std::string& path) {
  if (path.empty() ||
      (fs::path(path).is_absolute() && path.find('\0') == std::string::npos)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", common::text::Quoted(path),
                   "; it must be an absolute path"));
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
  RETURN_IF_ERROR(CheckAbsolute("base_directory", request.base_directory()));
  RETURN_IF_ERROR(CheckAbsolute("run_directory", request.run_directory()));
  const fs::path base(request.base_directory());
  spec::ParseOptions options;
  options.overrides = {request.overrides().begin(), request.overrides().end()};
  for (const v1::FlagOverride& each : request.flag_overrides()) {
    RETURN_IF_ERROR(CheckFlag(each.flag()));
    options.flag_overrides.push_back(
        {.setting = each.setting(), .flag = each.flag()});
  }
  options.read_config_json =
      [&](absl::string_view folder) -> absl::StatusOr<std::string> {
    if (mode_ == Mode::kDeployed) {
      return absl::InvalidArgumentError(NoRoots(folder));
    }
    return common::file::ReadFile(
        (base / std::string(folder) / "config.json").string(),
        spec::kMaxJobFileBytes);
  };
  spec::ParsedJob parsed =
      spec::ParseJob(request.file(), request.file_name(), options);
  RETURN_IF_ERROR(parsed.status());

  dispatch::NewJob job;
  job.request = request;
  if (!request.run_directory().empty()) {
    // Two spellings of one folder are one.
    std::string folder =
        fs::path(request.run_directory()).lexically_normal().string();
    if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    job.run_directory_fault = CheckFree(folder);
    job.request.set_run_directory(folder);
  }
  job.spec = std::move(parsed.spec);
  job.notes = std::move(parsed.notes);
  std::vector<spec::Violation> violations;
  spec::ForEachPath(job.spec, [&](absl::string_view key, spec::PathKind,
                                  std::string& path) {
    if (mode_ == Mode::kDeployed) {
      violations.push_back({std::string(key), NoRoots(path)});
      return;
    }
    if (fs::path(path).is_relative() && base.empty()) {
      violations.push_back({std::string(key),
                            absl::StrCat(common::text::Quoted(path),
                                         " is relative, and the request has no "
                                         "base_directory")});
    }
    path = (base / path).lexically_normal().string();
  });
  const auto read = [&violations](const char* key, const std::string& path,
                                  int64_t limit, std::string& to) {
    absl::StatusOr<std::string> text = common::file::ReadFile(path, limit);
    if (text.ok()) {
      to = *std::move(text);
    } else {
      violations.push_back({key, std::string(text.status().message())});
    }
  };
  if (violations.empty()) {
    if (job.spec.pipeline.schedule == spec::ScheduleKind::kFile) {
      read("pipeline.schedule", job.spec.pipeline.schedule_file,
           schedule::kMaxCsvBytes, job.schedule_text);
    }
    if (job.spec.virtual_times.profile.has_value()) {
      read("virtual.profile", *job.spec.virtual_times.profile,
           spec::kMaxJobFileBytes, job.profile_text);
    }
  }
  RETURN_IF_ERROR(spec::ToStatus(violations, parsed.positions));
  job.positions = std::move(parsed.positions);
  return job;
}

}  // namespace penstock::coordinator::service
