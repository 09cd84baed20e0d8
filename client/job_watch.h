// Watches one job on a thread of its own, for a main thread that also waits
// for signals and children.
#ifndef PENSTOCK_CLIENT_JOB_WATCH_H_
#define PENSTOCK_CLIENT_JOB_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/coordinator_client.h"
#include "common/sync/mutex.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client {

// Thread-safe.
class JobWatch {
 public:
  // Borrows the client. `wake` is called after each event, on the watching
  // thread.
  JobWatch(CoordinatorClient& client, const std::string& job_id,
           std::function<void()> wake);
  ~JobWatch();

  // What came since the last call.
  std::vector<v1::JobEvent> Take();
  // Set once the stream has ended: OK after a terminal state.
  std::optional<absl::Status> ended() const;

 private:
  void Run(const std::string& job_id);

  CoordinatorClient& client_;
  const std::function<void()> wake_;

  mutable common::sync::Mutex mutex_;
  std::vector<v1::JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_JOB_WATCH_H_
