// How many calls of one kind a server has at once. gRPC's own limit lets
// further calls of a connection wait silently; this one answers them.
#ifndef PENSTOCK_COMMON_RPC_ADMISSION_H_
#define PENSTOCK_COMMON_RPC_ADMISSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/sync/mutex.h"

namespace penstock::common::rpc {

// Thread-safe.
class Admission {
 public:
  // A call that is counted until the last copy is gone.
  using Ticket = std::shared_ptr<const Admission>;

  // `what`, in the plural, and `remedy` are for the refusal: "WatchJob
  // streams", "end one of them, or try again later".
  Admission(std::string what, int limit, std::string remedy);

  // ResourceExhausted when `limit` calls are there. The Admission must outlive
  // the ticket.
  absl::StatusOr<Ticket> Enter();

 private:
  void Leave();

  const std::string what_;
  const int limit_;
  const std::string remedy_;

  sync::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_ADMISSION_H_
