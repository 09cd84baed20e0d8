#include "coordinator/service/stage_service.h"

#include <grpcpp/support/server_callback.h>

#include "coordinator/service/pages.h"
#include "coordinator/service/unary.h"
#include "penstock/v1/stage_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

class GrpcStageServer final : public StageServer,
                              public v1::StageService::CallbackService {
 public:
  GrpcStageServer(CoreLoop& loop, Admissions& admissions)
      : loop_(loop), admissions_(admissions) {}

  grpc::Service* grpc_service() override { return this; }

  grpc::ServerUnaryReactor* ListStages(
      grpc::CallbackServerContext* context,
      const v1::ListStagesRequest* request,
      v1::ListStagesResponse* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions&) {
          return PageOfStages(core.ListStages(now), request->page_token(),
                              request->page_size());
        });
  }

  grpc::ServerUnaryReactor* GetStage(grpc::CallbackServerContext* context,
                                     const v1::GetStageRequest* request,
                                     v1::Stage* response) override {
    return AnswerFromCore(
        context, admissions_.calls, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions&) {
          return core.GetStage(request->stage_name(), now);
        });
  }

 private:
  CoreLoop& loop_;
  Admissions& admissions_;
};

}  // namespace

std::unique_ptr<StageServer> StageServer::Create(CoreLoop& loop,
                                                 Admissions& admissions) {
  return std::make_unique<GrpcStageServer>(loop, admissions);
}

}  // namespace penstock::coordinator::service
