#include "coordinator/dispatch/job_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/result_names.h"
#include "common/log/log.h"
#include "common/time/proto_time.h"
#include "coordinator/jobs/job_state.h"
#include "nlohmann/json.hpp"

namespace penstock::coordinator::dispatch {

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

void JobLog::Emit(v1::JobEvent event, const Now& now, Actions& actions) {
  job_.set_revision(job_.revision() + 1);
  event.set_revision(job_.revision());
  *event.mutable_time() = common::time::ToProto(now.wall);
  if (event.has_job()) event.mutable_job()->set_revision(job_.revision());
  CHECK_OK(store_.Update(job_));
  actions.push_back(PublishJob{job_.id(), std::move(event)});
}

void JobLog::Publish(const Now& now, Actions& actions) {
  v1::JobEvent event;
  *event.mutable_job() = job_;
  Emit(std::move(event), now, actions);
}

void JobLog::Move(v1::Job::State state, const Now& now, Actions& actions) {
  // Before the job itself: watchers leave after a terminal state.
  Announce(state, now, actions);
  job_.set_state(state);
  Publish(now, actions);
}

void JobLog::Announce(v1::Job::State state, const Now& now, Actions& actions) {
  CHECK_OK(jobs::CheckTransition(job_.state(), state));
  Occur({.kind = "STATE",
         .message = absl::StrCat(jobs::StateName(job_.state()), " -> ",
                                 jobs::StateName(state)),
         .step = job_.step()},
        now, actions);
}

void JobLog::Occur(const Event& event, const Now& now, Actions& actions) {
  v1::JobEvent published;
  v1::Occurrence& occurrence = *published.mutable_occurrence();
  occurrence.set_severity(event.severity);
  occurrence.set_kind(event.kind);
  occurrence.set_message(event.message);
  occurrence.set_stage_name(event.stage_name);
  occurrence.set_step(event.step);
  occurrence.set_consequence(event.consequence);
  Emit(std::move(published), now, actions);

  nlohmann::ordered_json line;
  line["time"] = Rfc3339(now.wall);
  line["severity"] = v1::Occurrence::Severity_Name(event.severity)
                         .substr(sizeof("SEVERITY_") - 1);
  line["kind"] = event.kind;
  line["message"] = event.message;
  line["stage"] = event.stage_name;
  line["step"] = event.step;
  line["consequence"] = event.consequence;
  Write(common::ids::kEventsFile,
        line.dump(-1, ' ', false,
                  nlohmann::ordered_json::error_handler_t::replace) +
            "\n",
        WriteJobFile::Mode::kAppend, actions);
}

void JobLog::Step(const v1::StepMetrics& metrics, const std::string& line,
                  const Now& now, Actions& actions) {
  job_.set_step(metrics.step());
  *job_.mutable_last_metrics() = metrics;
  v1::JobEvent event;
  *event.mutable_metrics() = metrics;
  Emit(std::move(event), now, actions);
  Write(common::ids::kMetricsFile, line, WriteJobFile::Mode::kAppend, actions);
}

void JobLog::OpenFolder(Actions& actions) {
  if (open_) return;
  open_ = true;
  for (WriteJobFile& write : waiting_) actions.push_back(std::move(write));
  waiting_.clear();
}

void JobLog::Write(absl::string_view name, const std::string& contents,
                   WriteJobFile::Mode mode, Actions& actions) {
  if (job_.run_directory().empty()) return;
  WriteJobFile write{.job_id = job_.id(),
                     .directory = job_.run_directory(),
                     .name = std::string(name),
                     .contents = contents,
                     .mode = mode};
  if (open_) {
    actions.push_back(std::move(write));
  } else {
    waiting_.push_back(std::move(write));
  }
}

void JobLog::Change(ChangeJobFolder change, Actions& actions) {
  if (job_.run_directory().empty()) return;
  CHECK(open_);
  change.job_id = job_.id();
  change.directory = job_.run_directory();
  actions.push_back(std::move(change));
}

}  // namespace penstock::coordinator::dispatch
