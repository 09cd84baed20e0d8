#include "coordinator/service/job_service.h"

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/refused_stream.h"
#include "common/rpc/stream_writer.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/sync/serial_queue.h"
#include "coordinator/dispatch/job_plan.h"
#include "coordinator/jobs/job_state.h"
#include "coordinator/service/pages.h"
#include "coordinator/service/queued_call.h"
#include "coordinator/service/unary.h"
#include "penstock/v1/job_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

using common::sync::MutexLock;

constexpr absl::Duration kBookmarkInterval = absl::Seconds(10);
// A watcher that lets more than this wait is told to come back.
constexpr size_t kLargestBacklog = 1024;

// One WatchJob stream. Ends after a terminal state, or when the reader is too
// slow. Keeps itself alive until OnDone.
class WatchReactor final : public grpc::ServerWriteReactor<v1::JobEvent>,
                           public common::rpc::ClosableReactor,
                           public JobWatcher {
 public:
  static std::shared_ptr<WatchReactor> Create(
      JobFeed& feed, common::rpc::Admission::Ticket ticket,
      common::rpc::ReactorRegistry& reactors) {
    auto reactor =
        std::make_shared<WatchReactor>(feed, std::move(ticket), reactors);
    reactor->self_ = reactor;
    return reactor;
  }
  WatchReactor(JobFeed& feed, common::rpc::Admission::Ticket ticket,
               common::rpc::ReactorRegistry& reactors)
      : feed_(feed), reactors_(reactors), ticket_(std::move(ticket)) {}

  // Subscribes to the job. The stream may be over by now: then nothing stays.
  absl::Status Watch(const std::string& job_id, int64_t after_revision) {
    const absl::Status status = feed_.Watch(job_id, after_revision, this);
    bool done = false;
    {
      MutexLock lock(&mutex_);
      done = done_;
    }
    if (done) feed_.Unwatch(this);
    return status;
  }

  void Offer(const v1::JobEvent& event) override {
    writer_.Write(event);
    if (event.has_job() && jobs::IsTerminal(event.job().state())) {
      writer_.EndAfterWrites(absl::OkStatus());
    }
  }

  void End() override { writer_.EndAfterWrites(absl::OkStatus()); }

  void Close(const absl::Status& status) override { writer_.End(status); }
  void OnWriteDone(bool ok) override { writer_.OnWriteDone(ok); }
  void OnCancel() override { writer_.OnCancel(); }
  void OnDone() override {
    writer_.OnDone();
    {
      MutexLock lock(&mutex_);
      done_ = true;
    }
    feed_.Unwatch(this);
    reactors_.Remove(this);
    ticket_.reset();
    const std::shared_ptr<WatchReactor> keep = std::move(self_);
  }

 private:
  JobFeed& feed_;
  common::rpc::ReactorRegistry& reactors_;
  common::rpc::StreamWriter<v1::JobEvent> writer_{
      common::rpc::ServerWrites<v1::JobEvent>(*this),
      {.messages = kLargestBacklog,
       .when_full = absl::OutOfRangeError(
           absl::StrCat("too slow: more than ", kLargestBacklog,
                        " events are waiting; watch again from 0"))}};
  std::shared_ptr<WatchReactor> self_;
  common::rpc::Admission::Ticket ticket_;

  common::sync::Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

class GrpcJobServer final : public JobServer,
                            public v1::JobService::CallbackService {
 public:
  GrpcJobServer(CoreLoop& loop, JobFeed& feed, const JobIntake& intake,
                const common::time::Clock& clock, Admissions& admissions,
                common::rpc::ReactorRegistry& reactors)
      : loop_(loop),
        feed_(feed),
        intake_(intake),
        clock_(clock),
        admissions_(admissions),
        reactors_(reactors),
        bookmarks_([this] { Bookmarks(); }) {}

  ~GrpcJobServer() override {
    ending_.Notify();
    bookmarks_.join();
  }

  grpc::Service* grpc_service() override { return this; }

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext*,
                                      const v1::CreateJobRequest* request,
                                      v1::Job* response) override {
    using Call = QueuedCall<v1::CreateJobRequest, v1::Job>;
    // Parsing opens files, and planning computes: not on gRPC's threads, nor on
    // the core's.
    return Call::Begin(
        request, response, admissions_.jobs, reactors_, intake_queue_,
        [this](const std::shared_ptr<Call>& call) {
          absl::StatusOr<dispatch::PlannedJob> job =
              ReadAndPlan(call->request());
          if (!job.ok()) {
            call->Answer(job.status());
            return;
          }
          loop_.Post([call, job = *std::move(job)](dispatch::Core& core,
                                                   const dispatch::Now& now,
                                                   dispatch::Actions& actions) {
            // Who has gone gets no job that nobody would know of.
            if (!call->over()) call->Answer(core.CreateJob(job, now, actions));
          });
        });
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::Job* response) override {
    return AnswerFromCore(context, admissions_.calls, loop_, response,
                          [request](dispatch::Core& core, const dispatch::Now&,
                                    dispatch::Actions&) {
                            return core.GetJob(request->job_id());
                          });
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now&,
                  dispatch::Actions&) -> absl::StatusOr<v1::ListJobsResponse> {
          ASSIGN_OR_RETURN(const int size, PageSize(request->page_size()));
          ASSIGN_OR_RETURN(std::vector<v1::Job> jobs,
                           core.ListJobs(request->page_token(), size + 1));
          return PageOfJobs(std::move(jobs), size);
        });
  }

  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions& actions) {
          return core.CancelJob(request->job_id(), now, actions);
        });
  }

  grpc::ServerWriteReactor<v1::JobEvent>* WatchJob(
      grpc::CallbackServerContext*,
      const v1::WatchJobRequest* request) override {
    absl::StatusOr<common::rpc::Admission::Ticket> ticket =
        admissions_.watches.Enter();
    if (!ticket.ok()) {
      return new common::rpc::RefusedStream<
          grpc::ServerWriteReactor<v1::JobEvent>>(ticket.status());
    }
    const auto watcher =
        WatchReactor::Create(feed_, *std::move(ticket), reactors_);
    if (!reactors_.Add(watcher.get())) {
      watcher->Close(
          absl::UnavailableError("the coordinator is shutting down"));
      return watcher.get();
    }
    // The name is resolved by the core, and publishing happens on its thread,
    // so nothing is published between looking the job up and watching it.
    loop_.Post(
        [watcher, id = request->job_id(), after = request->after_revision()](
            dispatch::Core& core, const dispatch::Now&, dispatch::Actions&) {
          const absl::StatusOr<v1::Job> job = core.GetJob(id);
          const absl::Status status =
              job.ok() ? watcher->Watch(job->id(), after) : job.status();
          if (!status.ok()) watcher->Close(status);
        });
    return watcher.get();
  }

 private:
  absl::StatusOr<dispatch::PlannedJob> ReadAndPlan(
      const v1::CreateJobRequest& request) const {
    ASSIGN_OR_RETURN(dispatch::NewJob job, intake_.Read(request));
    return dispatch::PlanJob(std::move(job));
  }

  // Shows watchers every 10 s that the stream lives.
  void Bookmarks() {
    while (!ending_.WaitForNotificationWithTimeout(kBookmarkInterval)) {
      feed_.Bookmark(clock_.Now());
    }
  }

  CoreLoop& loop_;
  JobFeed& feed_;
  const JobIntake& intake_;
  const common::time::Clock& clock_;
  Admissions& admissions_;
  common::rpc::ReactorRegistry& reactors_;
  common::sync::SerialQueue intake_queue_;
  common::sync::Notification ending_;
  std::thread bookmarks_;  // Last: it uses the others.
};

}  // namespace

std::unique_ptr<JobServer> JobServer::Create(
    CoreLoop& loop, JobFeed& feed, const JobIntake& intake,
    const common::time::Clock& clock, Admissions& admissions,
    common::rpc::ReactorRegistry& reactors) {
  return std::make_unique<GrpcJobServer>(loop, feed, intake, clock, admissions,
                                         reactors);
}

}  // namespace penstock::coordinator::service
