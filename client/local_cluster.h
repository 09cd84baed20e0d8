// The embedded cluster of `penstock run`: a coordinator and stage daemons as
// child processes, control over Unix sockets in a folder of our own.
#ifndef PENSTOCK_CLIENT_LOCAL_CLUSTER_H_
#define PENSTOCK_CLIENT_LOCAL_CLUSTER_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/child_process.h"
#include "client/coordinator_client.h"
#include "common/sync/serial_queue.h"
#include "common/time/clock.h"

namespace penstock::client {

// Thread-compatible: confined to main's thread, whose end the kernel takes for
// the parent's.
class LocalCluster {
 public:
  struct Options {
    std::string binary_directory;  // Of penstock-coordinator, penstock-stage.
    // Where the folder for sockets is made: $XDG_RUNTIME_DIR or the temporary
    // folder. Paths stay below the kernel's limit of 107 bytes.
    std::string runtime_directory;
    const common::time::Clock* clock = nullptr;  // Borrowed.
  };

  // Starts the coordinator and waits until it serves, for `limit` at most.
  // Errors name the program, and how it ended with the last line of its log:
  // DeadlineExceeded when it says nothing, Unavailable otherwise. Cancelled: a
  // signal to stop ended the wait; it is there still (StopIsPending).
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(
      const Options& options, absl::Duration limit);

  // Stop(), with the default limit.
  ~LocalCluster();

  // Not after Disconnect() or Stop().
  CoordinatorClient& client() { return *client_; }

  struct StageOptions {
    int count = 1;
    std::string device;
    int threads = 1;  // Compute threads of jobs that leave it to the stage.
    std::string log_directory;  // Exists; gets stage-N.log.
  };
  // Spawns stage-0 ... stage-(count - 1).
  absl::Status StartStages(const StageOptions& options);

  // Gives up the calls under way and closes the connection to the coordinator,
  // which waits for that when it ends. Idempotent.
  void Disconnect();

  // Children that ended since the last call. While connected, a stage is
  // reported to the coordinator (ReportStageExit), whose answer this does not
  // wait for.
  struct Ended {
    std::string name;  // "coordinator", "stage-2"
    ChildExit exit;
    std::string last_log_line;
    std::string trouble;  // The same, unless that only informs.
  };
  std::vector<Ended> Reap();

  // Writes the coordinator's log so far to `path`. (It starts before there is a
  // folder for it, and a refused job leaves none.)
  absl::Status SaveCoordinatorLog(const std::string& path) const;

  // SIGTERM to stages, then to the coordinator, SIGKILL for what is left after
  // `limit`; reaps all and removes the socket folder. Idempotent.
  void Stop(absl::Duration limit = absl::Seconds(3));

 private:
  struct Child {
    std::string name;
    pid_t pid = 0;
    int log_fd = -1;
  };

  LocalCluster(const Options& options, std::string folder);
  // Takes the log.
  absl::Status Launch(const std::string& name, ChildCommand command);
  absl::Status StartCoordinator(absl::Duration limit);
  // Until the coordinator has said that it serves, through the pipe `ready`.
  absl::Status AwaitCoordinator(int ready,
                                common::time::MonotonicTime deadline);
  // Until a call reaches it.
  absl::Status AwaitServing(common::time::MonotonicTime deadline);
  // How the coordinator ended that said nothing, or that it has not yet.
  absl::Status EndAtStart(common::time::MonotonicTime deadline);
  std::string SocketOf(const std::string& name) const;
  enum class Told { kCoordinator, kNobody };
  std::vector<Ended> ReapAnd(Told told);
  // Does not block.
  void Report(const std::string& stage, const ChildExit& exit);
  // Signals children (kStages: all but the coordinator) and reaps until none of
  // them is left, or the deadline.
  enum class Which { kStages, kAll };
  void EndChildren(Which which, int signal,
                   common::time::MonotonicTime deadline);

  const Options options_;
  const std::string folder_;  // Mode 0700; the coordinator makes it.
  std::unique_ptr<CoordinatorClient> client_;
  // Ends of stages, on their way to a coordinator that may hang. Uses client_;
  // made for the first.
  std::optional<common::sync::SerialQueue> reports_;
  std::vector<Child> children_;  // Alive; the coordinator first.
  int coordinator_log_ = -1;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_LOCAL_CLUSTER_H_
