// What the core takes and what it asks for. Plain values: whoever runs the core
// (gRPC shells, a test, a simulation) carries the actions out, in their order.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_ACTIONS_H_
#define PENSTOCK_COORDINATOR_DISPATCH_ACTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "coordinator/planner/model_shape.h"
#include "coordinator/planner/plan.h"
#include "coordinator/registry/registry.h"
#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/violation.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::dispatch {

using registry::SessionId;

// Read once an event by whoever delivers it.
struct Now {
  common::time::MonotonicTime monotonic;  // Deadlines and durations.
  absl::Time wall;                        // What people read.
};

// A job file that was parsed and found right, and all that goes with it.
struct NewJob {
  v1::CreateJobRequest request;  // As it came.
  spec::JobSpec spec;            // Its paths are absolute.
  spec::PositionMap positions;   // Where each key stands, for later refusals.
  std::vector<std::string> notes;
  // Contents of the schedule file, where pipeline.schedule is file:PATH.
  std::string schedule_text;
  // Contents of virtual.profile, where it is given.
  std::string profile_text;
  // Why results cannot go to request.run_directory(); a request that is
  // repeated finds there what it made itself.
  absl::Status run_directory_fault;
};

// A job with the planner's word on it (job_plan.h).
struct PlannedJob {
  NewJob job;
  planner::PlanRequest request;  // As far as the job file says.
  planner::StageMap map;         // By which inputs are checked.
  double bubble_rate = 0;        // Predicted.
};

// Puts a message on a session; it is not lost unless the session breaks.
struct SendToStage {
  SessionId session = 0;
  v1::CoordinatorMessage message;
};

// Ends a session with this status. What waits to be sent on it is dropped: the
// stage's next session begins with that, an Abort included (stage_links.h). Of
// the core's own closing it has forgotten the session already, and no
// BreakSession is expected (one does no harm). A shell that closes one because
// the core refused its message (service/sessions.cc) lets BreakSession follow.
struct CloseSession {
  SessionId session = 0;
  absl::Status status;
};

// Try to connect to a stage's monitor port, now, once. Core::MonitorRefused
// where the connect is refused; nothing otherwise.
struct ProbeMonitor {
  std::string stage_name;
  std::string incarnation;
  std::string address;  // "unix:PATH" or "host:port".
};

// A file of a job's result folder; folders on the way are made. In order with
// the other writes of the same folder.
struct WriteJobFile {
  enum class Mode {
    kReplace,  // Whole, by a temporary name and a rename.
    kAppend,   // `contents` ends in a newline.
  };
  std::string job_id;
  std::string directory;  // The job's result folder, absolute.
  std::string name;       // Below it: common/ids/result_names.h.
  std::string contents;
  Mode mode = Mode::kReplace;
};

// Work on one folder in a job's result folder, in order with the writes there.
// Each but kRemove is answered by Core::FolderChanged.
struct ChangeJobFolder {
  enum class Change {
    kMake,
    kConfirm,  // Holds what `expected` says; those files are removed then.
    kPublish,  // Whole: gets the name `to`, durably.
    kRemove,   // With all that is in it; nothing where it is not there.
    kFlush,    // Nothing: all before it is written, or has failed.
  };
  // A file that another process says it has written.
  struct ExpectedFile {
    std::string name;
    std::string contents;
    std::string stage_name;  // Who wrote it, and where.
    std::string host;
  };
  std::string job_id;
  std::string directory;  // The job's result folder, absolute.
  std::string name;       // Below it.
  Change change = Change::kMake;
  std::string to;                      // kPublish.
  std::vector<ExpectedFile> expected;  // kConfirm.
};

// The answer. Not OK: file_error.h's reasons; `stage_name` is whose file is to
// blame, or empty.
struct FolderChanged {
  std::string job_id;
  ChangeJobFolder::Change change = ChangeJobFolder::Change::kMake;
  absl::Status status;
  std::string stage_name;
};

// What a job's stages are to do, now that they and the inputs are known: takes
// seconds of a core for the largest ones. Answered by Core::PlanMade.
struct MakePlan {
  std::string job_id;
  planner::PlanRequest request;
};

// The answer; not OK as planner::MakePlan says.
struct PlanMade {
  std::string job_id;
  absl::StatusOr<planner::Plan> plan;
};

// Something to tell the job's watchers. Revisions of one job are contiguous.
struct PublishJob {
  std::string job_id;
  v1::JobEvent event;
};

// The core has forgotten a job that ended long ago; nothing more comes of it.
struct ForgetJob {
  std::string job_id;
  std::string directory;  // Its result folder, which stays; or "".
};

using Action =
    std::variant<SendToStage, CloseSession, ProbeMonitor, WriteJobFile,
                 ChangeJobFolder, MakePlan, PublishJob, ForgetJob>;
using Actions = std::vector<Action>;

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_ACTIONS_H_
