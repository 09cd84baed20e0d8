// The answer to a stream that is not taken.
#ifndef PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_
#define PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_

#include "absl/status/status.h"
#include "common/rpc/grpc_status.h"
#include "common/sync/happens_before.h"

namespace penstock::common::rpc {

// A server reactor that ends its call with `status` (not OK) as soon as gRPC
// has bound it; a service method returns a new one. Deletes itself.
// Confined to gRPC's reactions, which come one after the other.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) : status_(status) {
    // Not Finish(): what is finished before it is bound is handed over inside
    // gRPC, out of TSan's sight.
    tag_.Release();
    this->StartSendInitialMetadata();
  }

  void OnSendInitialMetadataDone(bool /*ok*/) override {
    tag_.Acquire();
    FinishReactor(*this, status_);
  }
  void OnDone() override {
    tag_.Acquire();
    delete this;
  }

 private:
  const absl::Status status_;
  sync::HappensBefore tag_;
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_REFUSED_STREAM_H_
