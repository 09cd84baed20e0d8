#include "client/coordinator_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/grpc_status.h"
#include "common/sync/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "penstock/v1/coordination_service.grpc.pb.h"
#include "penstock/v1/job_service.grpc.pb.h"
#include "penstock/v1/plan_service.grpc.pb.h"
#include "penstock/v1/stage_service.grpc.pb.h"

namespace penstock::client {
namespace {

using common::sync::MutexLock;

class GrpcCoordinatorClient final : public CoordinatorClient {
 public:
  explicit GrpcCoordinatorClient(const Options& options)
      : options_(options),
        channel_(common::rpc::CreateChannel(options.address,
                                            common::rpc::ChannelUse::kShared)),
        health_(grpc::health::v1::Health::NewStub(channel_)),
        coordination_(v1::CoordinationService::NewStub(channel_)),
        jobs_(v1::JobService::NewStub(channel_)),
        plans_(v1::PlanService::NewStub(channel_)),
        stages_(v1::StageService::NewStub(channel_)) {}

  void CancelCalls() override {
    MutexLock lock(&mutex_);
    calls_cancelled_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

  absl::Status AwaitServing(absl::Duration timeout) override {
    if (channel_->WaitForConnected(common::rpc::DeadlineAfter(timeout))) {
      return absl::OkStatus();
    }
    return absl::UnavailableError(absl::StrCat("no coordinator answers on ",
                                               options_.address.ToString()));
  }

  absl::StatusOr<std::string> Health(const std::string& service) override {
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    auto response =
        Call(*health_, &grpc::health::v1::Health::Stub::Check, request);
    if (absl::IsNotFound(response.status())) {
      return absl::NotFoundError(absl::StrCat(
          options_.address.ToString(), " has no health service \"", service,
          "\"; a coordinator has readiness, liveness and \"\""));
    }
    if (!response.ok()) return response.status();
    return grpc::health::v1::HealthCheckResponse::ServingStatus_Name(
        response->status());
  }

  absl::StatusOr<v1::Job> CreateJob(
      const v1::CreateJobRequest& request) override {
    return Call(*jobs_, &v1::JobService::Stub::CreateJob, request,
                options_.computing);
  }
  absl::StatusOr<v1::Job> CancelJob(const std::string& job_id,
                                    absl::Duration timeout) override {
    v1::CancelJobRequest request;
    request.set_job_id(job_id);
    return Call(*jobs_, &v1::JobService::Stub::CancelJob, request, timeout);
  }

  absl::Status WatchJob(
      const std::string& job_id, int64_t& resume_after,
      const std::function<bool(const v1::JobEvent&)>& visit) override {
    grpc::ClientContext context;
    {
      MutexLock lock(&mutex_);
      if (watch_cancelled_) return absl::OkStatus();
      watch_ = &context;
    }
    v1::WatchJobRequest request;
    request.set_job_id(job_id);
    request.set_after_revision(resume_after);
    const auto stream = jobs_->WatchJob(&context, request);
    v1::JobEvent event;
    bool wanted = true;
    while (wanted && stream->Read(&event)) {
      resume_after = event.revision();
      wanted = visit(event);
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = stream->Finish();
    MutexLock lock(&mutex_);
    watch_ = nullptr;
    if (!wanted || watch_cancelled_) return absl::OkStatus();
    return Failure(status);
  }

  void CancelWatch() override {
    MutexLock lock(&mutex_);
    watch_cancelled_ = true;
    if (watch_ != nullptr) watch_->TryCancel();
  }

  absl::StatusOr<v1::ListStagesResponse> ListStages() override {
    v1::ListStagesResponse all;
    v1::ListStagesRequest request;
    do {
      auto page = Call(*stages_, &v1::StageService::Stub::ListStages, request);
      if (!page.ok()) return page.status();
      request.set_page_token(page->next_page_token());
      page->clear_next_page_token();
      all.MergeFrom(*page);
    } while (!request.page_token().empty());
    return all;
  }

  absl::Status ReportStageExit(
      const v1::ReportStageExitRequest& request) override {
    return Call(*coordination_, &v1::CoordinationService::Stub::ReportStageExit,
                request)
        .status();
  }

  absl::StatusOr<v1::SimulateScheduleResponse> SimulateSchedule(
      const v1::SimulateScheduleRequest& request) override {
    return Call(*plans_, &v1::PlanService::Stub::SimulateSchedule, request,
                options_.computing);
  }
  absl::StatusOr<v1::VerifyScheduleResponse> VerifySchedule(
      const v1::VerifyScheduleRequest& request) override {
    return Call(*plans_, &v1::PlanService::Stub::VerifySchedule, request,
                options_.computing);
  }

 private:
  // Of a call that did not succeed. A coordinator's own answer has details
  // (common/rpc/grpc_status.h); gRPC's, or that of a server of another kind,
  // gets the address.
  absl::Status Failure(const grpc::Status& status) const {
    const absl::Status converted = common::rpc::FromGrpcStatus(status);
    if (!status.error_details().empty()) return converted;
    const std::string address = options_.address.ToString();
    switch (converted.code()) {
      case absl::StatusCode::kUnimplemented:
      case absl::StatusCode::kUnknown:
      case absl::StatusCode::kInternal:
        return absl::UnavailableError(absl::StrCat(
            address, " answers, but not as a coordinator does",
            converted.message().empty() ? "" : ": ", converted.message()));
      case absl::StatusCode::kCancelled:
        // Not by us: a server that ends does that to the calls that it has.
        return absl::UnavailableError(
            absl::StrCat(address, " is shutting down"));
      default:
        return absl::Status(converted.code(),
                            absl::StrCat(address, ": ", converted.message()));
    }
  }

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request) {
    return Call(stub, method, request, options_.timeout);
  }
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request, absl::Duration timeout) {
    grpc::ClientContext context;
    context.set_deadline(common::rpc::DeadlineAfter(timeout));
    Response response;
    {
      MutexLock lock(&mutex_);
      if (calls_cancelled_) return GivenUp();
      calls_.insert(&context);
    }
    const grpc::Status status = (stub.*method)(&context, request, &response);
    {
      MutexLock lock(&mutex_);
      calls_.erase(&context);
      if (!status.ok() && calls_cancelled_) return GivenUp();
    }
    if (!status.ok()) return Failure(status);
    return response;
  }

  static absl::Status GivenUp() {
    return absl::CancelledError("the call was given up");
  }

  const Options options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
  const std::unique_ptr<v1::CoordinationService::Stub> coordination_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  const std::unique_ptr<v1::PlanService::Stub> plans_;
  const std::unique_ptr<v1::StageService::Stub> stages_;

  common::sync::Mutex mutex_;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);  // Unary.
  bool calls_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* watch_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool watch_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<CoordinatorClient> CoordinatorClient::Connect(
    const Options& options) {
  return std::make_unique<GrpcCoordinatorClient>(options);
}

}  // namespace penstock::client
