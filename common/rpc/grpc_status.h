// absl::Status to and from grpc::Status: the only conversion in the project.
//
// A reason (status/error_details.h) travels as google.rpc.ErrorInfo. Message
// and details together stay small, because gRPC replaces the real status by
// RESOURCE_EXHAUSTED when its trailers are too large.
#ifndef PENSTOCK_COMMON_RPC_GRPC_STATUS_H_
#define PENSTOCK_COMMON_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <utility>

#include "absl/status/status.h"
#include "common/sync/happens_before.h"

namespace penstock::common::rpc {

// The domain of every ErrorInfo.
inline constexpr char kErrorDomain[] = "penstock.dev";

// A message over 3 KiB is cut at a line end where there is one, with a line
// that says how many bytes are missing.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// reactor.Finish() from a thread that is none of gRPC's: it may run before
// gRPC has bound the reactor. Once, as Finish().
template <typename Reactor>
void FinishReactor(Reactor& reactor, const absl::Status& status) {
  grpc::Status converted = ToGrpcStatus(status);
  const sync::HiddenLocking hidden;
  reactor.Finish(std::move(converted));
}

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_GRPC_STATUS_H_
