#include "coordinator/service/stage_service.h"

#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/service/unary.h"
#include "penstock/v1/stage_service.grpc.pb.h"

namespace penstock::coordinator::service {
namespace {

constexpr int kDefaultPage = 100;
constexpr int kLargestPage = 1000;

// Stages after `token` (a name), at most `size` of them.
absl::StatusOr<v1::ListStagesResponse> Page(std::vector<v1::Stage> stages,
                                            const std::string& token,
                                            int size) {
  if (size < 0) return absl::InvalidArgumentError("page_size is negative");
  size = size == 0 ? kDefaultPage : std::min(size, kLargestPage);
  std::sort(stages.begin(), stages.end(),
            [](const v1::Stage& a, const v1::Stage& b) {
              return a.name() < b.name();
            });
  v1::ListStagesResponse page;
  for (v1::Stage& stage : stages) {
    if (stage.name() <= token) continue;
    if (page.stages_size() == size) {
      page.set_next_page_token(page.stages(size - 1).name());
      break;
    }
    *page.add_stages() = std::move(stage);
  }
  return page;
}

class GrpcStageServer final : public StageServer,
                              public v1::StageService::CallbackService {
 public:
  explicit GrpcStageServer(CoreLoop& loop) : loop_(loop) {}

  grpc::Service* grpc_service() override { return this; }

  grpc::ServerUnaryReactor* ListStages(
      grpc::CallbackServerContext* context,
      const v1::ListStagesRequest* request,
      v1::ListStagesResponse* response) override {
    return AnswerFromCore(
        context, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions&) {
          return Page(core.ListStages(now), request->page_token(),
                      request->page_size());
        });
  }

  grpc::ServerUnaryReactor* GetStage(grpc::CallbackServerContext* context,
                                     const v1::GetStageRequest* request,
                                     v1::Stage* response) override {
    return AnswerFromCore(
        context, loop_, response,
        [request](dispatch::Core& core, const dispatch::Now& now,
                  dispatch::Actions&) {
          return core.GetStage(request->stage_name(), now);
        });
  }

 private:
  CoreLoop& loop_;
};

}  // namespace

std::unique_ptr<StageServer> StageServer::Create(CoreLoop& loop) {
  return std::make_unique<GrpcStageServer>(loop);
}

}  // namespace penstock::coordinator::service
