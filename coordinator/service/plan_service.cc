#include "coordinator/service/plan_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/reactor_registry.h"
#include "common/sync/serial_queue.h"
#include "coordinator/service/limits.h"
#include "coordinator/service/queued_call.h"
#include "coordinator/service/schedule_answers.h"
#include "penstock/v1/plan_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

class GrpcPlanServer final : public PlanServer,
                             public v1::PlanService::CallbackService {
 public:
  GrpcPlanServer(Admissions& admissions, common::rpc::ReactorRegistry& reactors)
      : admissions_(admissions), reactors_(reactors) {}

  grpc::Service* grpc_service() override { return this; }

  grpc::ServerUnaryReactor* SimulateSchedule(
      grpc::CallbackServerContext*, const v1::SimulateScheduleRequest* request,
      v1::SimulateScheduleResponse* response) override {
    return Answer(request, response, &service::SimulateSchedule);
  }

  grpc::ServerUnaryReactor* VerifySchedule(
      grpc::CallbackServerContext*, const v1::VerifyScheduleRequest* request,
      v1::VerifyScheduleResponse* response) override {
    return Answer(request, response, &service::VerifySchedule);
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      const Request* request, Response* response,
      absl::StatusOr<Response> (*compute)(const Request&)) {
    using Call = QueuedCall<Request, Response>;
    return Call::Begin(request, response, admissions_.plans, reactors_, queue_,
                       [compute](const std::shared_ptr<Call>& call) {
                         call->Answer(compute(call->request()));
                       });
  }

  Admissions& admissions_;
  common::rpc::ReactorRegistry& reactors_;
  common::sync::SerialQueue queue_;
};

}  // namespace

std::unique_ptr<PlanServer> PlanServer::Create(
    Admissions& admissions, common::rpc::ReactorRegistry& reactors) {
  return std::make_unique<GrpcPlanServer>(admissions, reactors);
}

}  // namespace penstock::coordinator::service
