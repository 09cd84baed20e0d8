// Core's jobs and reads.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/ids/generated_ids.h"
#include "common/ids/names.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/core_state.h"
#include "coordinator/dispatch/job_log.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/resolved_yaml.h"

namespace penstock::coordinator::dispatch {

using registry::StageEntry;

namespace {

// Asked for again: the same job, whatever the encoding of the request was.
bool SameRequest(const v1::CreateJobRequest& a, const v1::CreateJobRequest& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// Whether what is written to one of the two folders may lie in the other. ""
// is none.
bool Overlap(absl::string_view a, absl::string_view b) {
  if (a.empty() || b.empty()) return false;
  if (a.size() > b.size()) std::swap(a, b);
  return absl::StartsWith(b, a) && (b.size() == a.size() || b[a.size()] == '/');
}

}  // namespace

// --- Jobs.

absl::StatusOr<v1::Job> Core::State::MakeJob(const PlannedJob& planned,
                                             const Now& now) {
  const NewJob& new_job = planned.job;
  const v1::CreateJobRequest& request = new_job.request;
  v1::Job job;
  if (!request.job_id().empty()) {
    RETURN_IF_ERROR(common::ids::CheckJobId(request.job_id()));
    job.set_id(request.job_id());
  } else {
    do {
      job.set_id(common::ids::MakeJobId(new_job.spec.name, options.random));
    } while (store.Get(job.id()).ok());
  }
  job.set_name(new_job.spec.name);
  job.set_state(v1::Job::STATE_QUEUED);
  *job.mutable_create_time() = common::time::ToProto(now.wall);
  job.set_stages(static_cast<int>(new_job.spec.pipeline.stages.value_or(1)));
  job.set_steps(new_job.spec.steps.value_or(0));
  job.set_run_directory(
      !request.run_directory().empty() ? request.run_directory()
      : options.state_directory.empty()
          ? ""
          : absl::StrCat(options.state_directory, "/jobs/", job.id()));
  job.set_resolved_yaml(spec::ToResolvedYaml(new_job.spec));
  for (const std::string& note : new_job.notes) job.add_notes(note);
  job.set_micro_batches(static_cast<int>(new_job.spec.batch.micro_batches));
  job.set_threads_per_stage(
      static_cast<int>(new_job.spec.threads_per_stage.value_or(0)));
  if (new_job.spec.device == spec::DeviceKind::kAuto) {
    // Until stages are chosen.
    job.set_device(std::string(
        spec::NameOf(spec::kDeviceKindNames, spec::DeviceKind::kCpu)));
    job.add_notes(
        absl::StrCat("device: ", job.device(),
                     " (auto; cuda where every chosen stage has it)"));
  } else {
    job.set_device(
        std::string(spec::NameOf(spec::kDeviceKindNames, new_job.spec.device)));
  }
  job.set_predicted_bubble_rate(planned.bubble_rate);
  return job;
}

absl::StatusOr<v1::Job> Core::CreateJob(const PlannedJob& planned,
                                        const Now& now, Actions& actions) {
  State& s = *state_;
  if (s.closing) {
    return absl::UnavailableError("the coordinator is shutting down");
  }
  const v1::CreateJobRequest& request = planned.job.request;
  if (!request.request_id().empty()) {
    if (!common::ids::IsUuid(request.request_id())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "request_id ", common::text::Quoted(request.request_id()),
          " is no UUID; make a new one for each job"));
    }
    const absl::StatusOr<jobs::JobRecord> repeated =
        s.store.GetByRequestId(request.request_id());
    if (repeated.ok()) {
      if (SameRequest(repeated->request, request)) return repeated->job;
      return absl::AlreadyExistsError(absl::StrCat(
          "request_id ", request.request_id(), " made job ", repeated->job.id(),
          " of another request; make a new one"));
    }
  }
  ASSIGN_OR_RETURN(v1::Job job, s.MakeJob(planned, now));
  if (request.validate_only()) {
    job.clear_id();
    job.clear_run_directory();
    return job;
  }
  RETURN_IF_ERROR(planned.job.run_directory_fault);
  for (const auto& other : s.runs) {
    if (!Overlap(other->job().run_directory(), job.run_directory())) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("job ", other->job().id(),
                     ", which has not ended, writes its results "
                     "to ",
                     common::text::Quoted(other->job().run_directory()),
                     "; give another run directory"));
  }
  RETURN_IF_ERROR(s.store.Create({.job = job, .request = request}));
  s.runs.push_back(
      std::make_unique<JobRun>(planned, JobLog(job, s.store), s.options));
  s.runs.back()->Created(s.Context(now, actions));
  const std::string id = job.id();
  s.Settle(now, actions);
  // The stages of a `penstock run` are about to start.
  if (JobRun* run = s.FindRun(id);
      run != nullptr && run->queued() && !s.options.fixed_stages) {
    run->KeepWaiting(s.Context(now, actions));
  }
  return GetJob(id);
}

absl::StatusOr<v1::Job> Core::CancelJob(absl::string_view job_id,
                                        const Now& now, Actions& actions) {
  State& s = *state_;
  ASSIGN_OR_RETURN(const v1::Job job, GetJob(job_id));
  JobRun* run = s.FindRun(job.id());
  if (run == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id(), " has ended"));
  }
  run->Cancel("cancelled", s.options.cancel_deadline, s.Context(now, actions));
  s.Settle(now, actions);
  return GetJob(job.id());
}

std::vector<std::string> Core::Close(absl::string_view why,
                                     absl::Duration limit, const Now& now,
                                     Actions& actions) {
  State& s = *state_;
  s.closing = true;
  std::vector<std::string> ids;
  for (const auto& run : s.runs) {
    ids.push_back(run->job().id());
    run->Cancel(why, limit, s.Context(now, actions));
  }
  s.Settle(now, actions);
  return ids;
}

// --- Reads.

absl::StatusOr<v1::Job> Core::GetJob(absl::string_view id_or_name) const {
  ASSIGN_OR_RETURN(const jobs::JobRecord record, state_->store.Get(id_or_name));
  return record.job;
}

absl::StatusOr<std::vector<v1::Job>> Core::ListJobs(absl::string_view before,
                                                    int limit) const {
  return state_->store.List(before, limit);
}

absl::StatusOr<v1::Stage> Core::GetStage(absl::string_view name,
                                         const Now& now) const {
  const StageEntry* stage = state_->registry.Find(name);
  if (stage == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no stage ", name));
  }
  return state_->registry.ToProto(*stage, now.monotonic);
}

std::vector<v1::Stage> Core::ListStages(const Now& now) const {
  std::vector<v1::Stage> stages;
  for (const StageEntry* stage : state_->registry.List()) {
    stages.push_back(state_->registry.ToProto(*stage, now.monotonic));
  }
  return stages;
}

}  // namespace penstock::coordinator::dispatch
