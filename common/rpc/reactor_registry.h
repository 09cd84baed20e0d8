// The live server reactors of one process, so that a server can be shut down:
// grpc::Server::Shutdown never returns while a reactor has not finished.
#ifndef PENSTOCK_COMMON_RPC_REACTOR_REGISTRY_H_
#define PENSTOCK_COMMON_RPC_REACTOR_REGISTRY_H_

#include <set>

#include "absl/status/status.h"
#include "common/sync/mutex.h"

namespace penstock::common::rpc {

// A reactor that can be told to end. Implementations are thread-safe: they
// finish their RPC once, under their own lock, and return at once.
class ClosableReactor {
 public:
  virtual ~ClosableReactor() = default;
  // Finishes the RPC with `status`, or does nothing when it was finished.
  virtual void Close(const absl::Status& status) = 0;
};

// Thread-safe.
class ReactorRegistry {
 public:
  // False after CloseAll(): the caller finishes its RPC itself, at once.
  bool Add(ClosableReactor* reactor);
  // Called from OnDone, before the reactor deletes itself, and after it has
  // last touched anything else that the server outlives: see ~RpcServer.
  void Remove(ClosableReactor* reactor);

  // Closes every live reactor and refuses new ones.
  void CloseAll(const absl::Status& status);

  int size() const;

 private:
  mutable sync::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<ClosableReactor*> live_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_REACTOR_REGISTRY_H_
