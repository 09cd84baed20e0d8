// Writes the files of job result folders, off the core's thread.
#ifndef PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_
#define PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/sync/serial_queue.h"
#include "coordinator/dispatch/actions.h"

namespace penstock::coordinator::service {

// Carries out one write, whole or not at all. Errors name the path and have the
// reason that the job fails with (common/status/file_error.h).
absl::Status WriteNow(const dispatch::WriteJobFile& write);

// Thread-safe. Writes of one JobFiles happen in the order of Post().
class JobFiles {
 public:
  // `on_failure` is told of each failed write, on the writer's thread.
  explicit JobFiles(
      std::function<void(const dispatch::WriteJobFile&, const absl::Status&)>
          on_failure);

  void Post(dispatch::WriteJobFile write);
  // Returns when everything posted before is written.
  void Drain() { queue_.Drain(); }

 private:
  const std::function<void(const dispatch::WriteJobFile&, const absl::Status&)>
      on_failure_;
  common::sync::SerialQueue queue_;
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_JOB_FILES_H_
