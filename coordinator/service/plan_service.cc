#include "coordinator/service/plan_service.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "absl/status/statusor.h"
#include "common/sync/serial_queue.h"
#include "coordinator/service/schedule_answers.h"
#include "coordinator/service/unary.h"
#include "penstock/v1/plan_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

class GrpcPlanServer final : public PlanServer,
                             public v1::PlanService::CallbackService {
 public:
  explicit GrpcPlanServer(Admissions& admissions) : admissions_(admissions) {}

  grpc::Service* grpc_service() override { return this; }

  grpc::ServerUnaryReactor* SimulateSchedule(
      grpc::CallbackServerContext* context,
      const v1::SimulateScheduleRequest* request,
      v1::SimulateScheduleResponse* response) override {
    return Answer(context, request, response, &service::SimulateSchedule);
  }

  grpc::ServerUnaryReactor* VerifySchedule(
      grpc::CallbackServerContext* context,
      const v1::VerifyScheduleRequest* request,
      v1::VerifyScheduleResponse* response) override {
    return Answer(context, request, response, &service::VerifySchedule);
  }

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context, const Request* request,
      Response* response, absl::StatusOr<Response> (*compute)(const Request&)) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto ticket = AdmitCall(admissions_.calls, *reactor);
    if (!ticket.has_value()) return reactor;
    queue_.Post([request, response, compute, reactor, ticket = *ticket] {
      FinishWith(*reactor, compute(*request), *response);
    });
    return reactor;
  }

  Admissions& admissions_;
  common::sync::SerialQueue queue_;
};

}  // namespace

std::unique_ptr<PlanServer> PlanServer::Create(Admissions& admissions) {
  return std::make_unique<GrpcPlanServer>(admissions);
}

}  // namespace penstock::coordinator::service
