// A unary call that is answered from the core's thread.
#ifndef PENSTOCK_COORDINATOR_SERVICE_UNARY_H_
#define PENSTOCK_COORDINATOR_SERVICE_UNARY_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/admission.h"
#include "common/rpc/grpc_status.h"
#include "coordinator/service/core_loop.h"
#include "coordinator/service/limits.h"

namespace penstock::coordinator::service {

// Counts a unary call. Where there are too many it is finished, and no ticket
// comes back.
inline std::optional<common::rpc::Admission::Ticket> AdmitCall(
    common::rpc::Admission& admission, grpc::ServerUnaryReactor& reactor) {
  absl::StatusOr<common::rpc::Admission::Ticket> ticket = admission.Enter();
  if (ticket.ok()) return *std::move(ticket);
  common::rpc::FinishReactor(reactor, ticket.status());
  return std::nullopt;
}

// Finishes the RPC with `result`; a response that is OK goes to `response`.
template <typename Response>
void FinishWith(grpc::ServerUnaryReactor& reactor,
                absl::StatusOr<Response> result, Response& response) {
  const absl::Status status = result.status();  // Before its value is moved.
  if (status.ok()) response = *std::move(result);
  common::rpc::FinishReactor(reactor, status);
}

// Posts `call`, (core, now, actions) -> StatusOr<Response>, and finishes the
// RPC with what it returns. The request must be captured by pointer: gRPC keeps
// it until the RPC is finished.
template <typename Response, typename Call>
grpc::ServerUnaryReactor* AnswerFromCore(grpc::CallbackServerContext* context,
                                         common::rpc::Admission& admission,
                                         CoreLoop& loop, Response* response,
                                         Call call) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto ticket = AdmitCall(admission, *reactor);
  if (!ticket.has_value()) return reactor;
  loop.Post([reactor, response, ticket = *ticket, call = std::move(call)](
                dispatch::Core& core, const dispatch::Now& now,
                dispatch::Actions& actions) {
    FinishWith<Response>(*reactor, call(core, now, actions), *response);
  });
  return reactor;
}

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_UNARY_H_
