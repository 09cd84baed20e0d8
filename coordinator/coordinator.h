// The coordinator's composition root: builds everything in dependency order.
#ifndef PENSTOCK_COORDINATOR_COORDINATOR_H_
#define PENSTOCK_COORDINATOR_COORDINATOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "coordinator/service/limits.h"
#include "penstock/v1/common.pb.h"

namespace penstock::coordinator {

// Serves until destroyed. Thread-safe.
class Coordinator {
 public:
  struct Options {
    common::rpc::Address listen;
    // Results of jobs that name no folder go to STATE/jobs/ID.
    std::string state_directory;
    // Of this start (state_folder.h); an embedded one has no other start.
    int64_t term = 1;
    // The embedded cluster of `penstock run`: requests name folders.
    bool embedded = false;
    absl::Duration lease = absl::Seconds(10);
    absl::Duration heartbeat = absl::Seconds(1);
    // Steps whose commands are sent ahead (dispatch/options.h); at least 1.
    int window = 2;
    service::Limits limits;
    // What the machine is called, as stages tell of theirs.
    std::string host;
    v1::BuildInfo build;
  };

  // InvalidArgument: dispatch/deadlines.h. AlreadyExists: the address is used.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(
      const Options& options);
  // As Stop(), and waits for every thread.
  virtual ~Coordinator() = default;

  // Takes no more jobs and cancels those that have not ended, because of `why`.
  // Returns when all have, with their results written, or within a second.
  // Call at most once, before the destructor.
  virtual void EndJobs(absl::string_view why) = 0;

  // Serves no more: every call is answered, or ended, and what was decided is
  // written. What still computes for callers who have gone, or reads files of
  // theirs from a disk that hangs, goes on.
  virtual void Stop() = 0;

  // With the port that the kernel chose.
  virtual const common::rpc::Address& address() const = 0;
};

}  // namespace penstock::coordinator

#endif  // PENSTOCK_COORDINATOR_COORDINATOR_H_
