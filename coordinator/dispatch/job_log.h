// What the world is told of a job: its state in the store, the watchers'
// events, and the files of its result folder.
//
// The folder is opened when the job's inputs and plan are accepted, or when the
// job ends for another reason than a refusal, which leaves no folder; what was
// to be written before waits until then.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_JOB_LOG_H_
#define PENSTOCK_COORDINATOR_DISPATCH_JOB_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/dispatch/actions.h"
#include "coordinator/jobs/job_store.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::dispatch {

// A line of events.jsonl.
struct Event {
  v1::Occurrence::Severity severity = v1::Occurrence::SEVERITY_INFO;
  std::string kind;  // "STAGE_LOST"
  std::string message;
  std::string stage_name;
  int64_t step = 0;
  bool consequence = false;  // It followed from an earlier failure.
};

// RFC 3339 in UTC with microseconds, as every file of the folder has it.
std::string Rfc3339(absl::Time time);

// Thread-compatible.
class JobLog {
 public:
  // `job` is stored already; `store` is borrowed.
  JobLog(const v1::Job& job, jobs::JobStore& store)
      : job_(job), store_(store) {}

  const v1::Job& job() const { return job_; }
  // To change fields; Publish() tells of them.
  v1::Job& mutable_job() { return job_; }

  // The job's first event.
  void Created(const Now& now, Actions& actions) { Publish(now, actions); }
  // The whole job to store and watchers.
  void Publish(const Now& now, Actions& actions);
  // CHECKs that the transition is legal: what decides on it is ours.
  void Move(v1::Job::State state, const Now& now, Actions& actions);
  // Only Move()'s event: the state itself follows later.
  void Announce(v1::Job::State state, const Now& now, Actions& actions);
  void Occur(const Event& event, const Now& now, Actions& actions);
  // A committed step: a line of metrics.jsonl, which ends in a newline.
  void Step(const v1::StepMetrics& metrics, const std::string& line,
            const Now& now, Actions& actions);

  void OpenFolder(Actions& actions);
  // Whether results are written, and so may be waited for.
  bool writes() const { return open_ && !job_.run_directory().empty(); }
  void Write(absl::string_view name, const std::string& contents,
             WriteJobFile::Mode mode, Actions& actions);
  // Of the folder `change.name`; nothing where results go nowhere. REQUIRES:
  // OpenFolder() before.
  void Change(ChangeJobFolder change, Actions& actions);

 private:
  void Emit(v1::JobEvent event, const Now& now, Actions& actions);

  v1::Job job_;
  jobs::JobStore& store_;
  bool open_ = false;
  std::vector<WriteJobFile> waiting_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_JOB_LOG_H_
