#include "coordinator/coordinator.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/process/build_info.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/sync/serial_queue.h"
#include "common/time/real_clock.h"
#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/deadlines.h"
#include "coordinator/dispatch/job_plan.h"
#include "coordinator/dispatch/options.h"
#include "coordinator/jobs/in_memory_job_store.h"
#include "coordinator/jobs/job_state.h"
#include "coordinator/service/core_loop.h"
#include "coordinator/service/job_feed.h"
#include "coordinator/service/job_files.h"
#include "coordinator/service/job_intake.h"
#include "coordinator/service/job_service.h"
#include "coordinator/service/monitor_probe.h"
#include "coordinator/service/plan_service.h"
#include "coordinator/service/sessions.h"
#include "coordinator/service/stage_service.h"

namespace penstock::coordinator {
namespace {

// `penstock run` ends all within five seconds of Ctrl-C, and its summary is
// written before that also where a stage does not answer.
constexpr absl::Duration kEmbeddedCancelDeadline = absl::Milliseconds(1500);
// Its stages start with it: all have registered by then, or never will.
constexpr absl::Duration kEmbeddedQueueDeadline = absl::Seconds(60);
constexpr absl::Duration kEmbeddedWaitingNotice = absl::Seconds(5);
// How long a monitor port that answers is watched. Its refusal must come within
// cause_window (dispatch/options.h) to count.
constexpr absl::Duration kProbe = absl::Milliseconds(150);

// What ends jobs has three seconds for all (main.cc), and the server needs one
// where a connection does not close.
constexpr absl::Duration kEndJobsDeadline = absl::Milliseconds(700);
constexpr absl::Duration kEndJobsLimit = absl::Milliseconds(900);

dispatch::Options CoreOptions(const Coordinator::Options& options) {
  dispatch::Options core;
  core.registry.lease = options.lease;
  core.registry.heartbeat = options.heartbeat;
  core.window = options.window;
  core.registry.lowest_protocol = common::process::kLowestProtocol;
  core.registry.highest_protocol = common::process::kHighestProtocol;
  core.term = options.term;
  core.build = options.build;
  core.host = options.host;
  core.random = common::ids::SystemRandom();
  core.state_directory = options.state_directory;
  if (options.embedded) {
    core.cancel_deadline = kEmbeddedCancelDeadline;
    core.fixed_stages = true;
    core.queue_deadline = kEmbeddedQueueDeadline;
    core.waiting_notice = kEmbeddedWaitingNotice;
  }
  return core;
}

// What a job's events.jsonl keeps, for whoever reads the daemon's log.
void Log(const std::string& job_id, const v1::Occurrence& what) {
  std::string text =
      absl::StrCat("job ", job_id, ": ", what.kind(), ": ", what.message());
  if (what.consequence()) absl::StrAppend(&text, " (a consequence)");
  switch (what.severity()) {
    case v1::Occurrence::SEVERITY_ERROR:
      LOG(ERROR) << text;
      break;
    case v1::Occurrence::SEVERITY_WARNING:
      LOG(WARNING) << text;
      break;
    default:
      LOG(INFO) << text;
  }
}

class CoordinatorProcess final : public Coordinator,
                                 private service::ActionSink {
 public:
  explicit CoordinatorProcess(const Options& options)
      : core_(CoreOptions(options), store_),
        intake_(options.embedded ? service::JobIntake::Mode::kEmbedded
                                 : service::JobIntake::Mode::kDeployed),
        files_({.on_failure =
                    [this](const dispatch::WriteJobFile& write,
                           const absl::Status& status) {
                      WriteFailed(write.job_id, status);
                    },
                .on_lost =
                    [this](const dispatch::WriteJobFile& write) {
                      LinesLost(write);
                    },
                .on_change =
                    [this](const dispatch::FolderChanged& done) {
                      FolderChanged(done);
                    }}),
        admissions_(options.limits),
        loop_(clock_, core_, *this),
        sessions_(
            service::Sessions::Create(loop_, clock_, admissions_, reactors_)),
        jobs_(service::JobServer::Create(loop_, feed_, intake_, clock_,
                                         admissions_, reactors_)),
        stages_(service::StageServer::Create(loop_, admissions_)),
        plans_(service::PlanServer::Create(admissions_, reactors_)) {}

  ~CoordinatorProcess() override {
    CoordinatorProcess::Stop();
    planning_.Drain();  // Of jobs: nothing calls back.
  }

  absl::Status Listen(const common::rpc::Address& address) {
    loop_.Start();
    ASSIGN_OR_RETURN(server_,
                     common::rpc::RpcServer::Start(
                         address,
                         {sessions_->grpc_service(), jobs_->grpc_service(),
                          stages_->grpc_service(), plans_->grpc_service()},
                         reactors_));
    address_ = server_->address();
    server_->SetServing("readiness", true);
    return absl::OkStatus();
  }

  void EndJobs(absl::string_view why) override {
    server_->SetServing("readiness", false);
    loop_.Post([this, why = std::string(why)](dispatch::Core& core,
                                              const dispatch::Now& now,
                                              dispatch::Actions& actions) {
      for (std::string& id : core.Close(why, kEndJobsDeadline, now, actions)) {
        LOG(INFO) << "job " << id << ": cancelled: " << why;
        awaited_.insert(std::move(id));
      }
      if (awaited_.empty()) jobs_ended_.Notify();
    });
    if (!jobs_ended_.WaitForNotificationWithTimeout(kEndJobsLimit)) {
      LOG(WARNING) << "not all jobs have ended in time";
    }
  }

  void Stop() override {
    server_.reset();  // Nothing calls in any more,
    loop_.Stop();     // what was posted is done,
    probes_.Drain();
    files_.Drain();  // and written.
  }

  const common::rpc::Address& address() const override { return address_; }

 private:
  void SendToStage(dispatch::SendToStage action) override {
    sessions_->Send(std::move(action));
  }
  void CloseSession(const dispatch::CloseSession& action) override {
    sessions_->Close(action);
  }
  void ProbeMonitor(const dispatch::ProbeMonitor& action) override {
    const common::time::MonotonicTime until = clock_.Monotonic() + kProbe;
    probes_.Post([this, action, until] {
      if (service::Probe(action.address, clock_, until) !=
          service::ProbeResult::kRefused) {
        return;
      }
      loop_.Post([action](dispatch::Core& core, const dispatch::Now& now,
                          dispatch::Actions& actions) {
        core.MonitorRefused(action.stage_name, action.incarnation, now,
                            actions);
      });
    });
  }
  void WriteJobFile(dispatch::WriteJobFile action) override {
    files_.Post(std::move(action));
  }
  void ChangeJobFolder(dispatch::ChangeJobFolder action) override {
    files_.Post(std::move(action));
  }
  void WriteFailed(const std::string& id, const absl::Status& status) {
    LOG(ERROR) << "job " << id << ": " << status;
    loop_.Post([id, status](dispatch::Core& core, const dispatch::Now& now,
                            dispatch::Actions& actions) {
      core.WriteFailed(id, status, now, actions);
    });
  }
  void LinesLost(const dispatch::WriteJobFile& write) {
    loop_.Post([id = write.job_id, file = write.name](
                   dispatch::Core& core, const dispatch::Now& now,
                   dispatch::Actions& actions) {
      core.LinesLost(id, file, now, actions);
    });
  }
  void FolderChanged(const dispatch::FolderChanged& done) {
    if (!done.status.ok()) {
      LOG(ERROR) << "job " << done.job_id << ": " << done.status;
    }
    loop_.Post([done](dispatch::Core& core, const dispatch::Now& now,
                      dispatch::Actions& actions) {
      core.FolderChanged(done, now, actions);
    });
  }
  void MakePlan(dispatch::MakePlan action) override {
    planning_.Post([this, action = std::move(action)] {
      loop_.Post([made = dispatch::MakePlanOf(action)](
                     dispatch::Core& core, const dispatch::Now& now,
                     dispatch::Actions& actions) mutable {
        core.PlanMade(std::move(made), now, actions);
      });
    });
  }
  void PublishJob(const dispatch::PublishJob& action) override {
    const bool ended =
        action.event.has_job() && jobs::IsTerminal(action.event.job().state());
    if (action.event.has_occurrence()) {
      Log(action.job_id, action.event.occurrence());
    }
    feed_.Publish(action.job_id, action.event);
    if (ended && awaited_.erase(action.job_id) > 0 && awaited_.empty()) {
      jobs_ended_.Notify();
    }
  }

  void ForgetJob(const dispatch::ForgetJob& action) override {
    feed_.Forget(action.job_id);
    files_.Forget(action.directory);
  }

  std::set<std::string> awaited_;  // Jobs that EndJobs() ends; loop_'s.
  common::sync::Notification jobs_ended_;

  // In dependency order: each uses only those above it.
  const common::time::RealClock clock_;
  jobs::InMemoryJobStore store_;
  dispatch::Core core_;
  const service::JobIntake intake_;
  common::rpc::ReactorRegistry reactors_;
  service::JobFeed feed_;
  service::JobFiles files_;
  common::sync::SerialQueue probes_;
  common::sync::SerialQueue planning_;
  service::Admissions admissions_;
  service::CoreLoop loop_;
  const std::unique_ptr<service::Sessions> sessions_;
  const std::unique_ptr<service::JobServer> jobs_;
  const std::unique_ptr<service::StageServer> stages_;
  const std::unique_ptr<service::PlanServer> plans_;
  std::unique_ptr<common::rpc::RpcServer> server_;
  common::rpc::Address address_;  // Its own, that of Listen().
};

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(
    const Options& options) {
  RETURN_IF_ERROR(dispatch::CheckDeadlines(CoreOptions(options)));
  auto coordinator = std::make_unique<CoordinatorProcess>(options);
  RETURN_IF_ERROR(coordinator->Listen(options.listen));
  return coordinator;
}

}  // namespace penstock::coordinator
