// The answer to a stream that is not taken.
#ifndef PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_
#define PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_

#include "absl/status/status.h"
#include "common/rpc/grpc_status.h"
#include "common/sync/happens_before.h"

namespace penstock::common::rpc {

// A server reactor that ends its call with `status` (not OK) at once; a service
// method returns a new one. Deletes itself.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) {
    FinishReactor(*this, status);
  }

  void OnDone() override {
    // gRPC moved the status, which dies with us, when it bound this reactor.
    const sync::HiddenLocking hidden;
    delete this;
  }
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_
