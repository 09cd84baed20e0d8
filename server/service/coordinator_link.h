// The wire to the coordinator, as the session loop sees it.
#ifndef PENSTOCK_SERVER_SERVICE_COORDINATOR_LINK_H_
#define PENSTOCK_SERVER_SERVICE_COORDINATOR_LINK_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::server::service {

// Thread-safe. One stream at a time.
class CoordinatorLink {
 public:
  // Called on threads of the link; must not block, must not call the link.
  struct Listener {
    std::function<void(v1::CoordinatorMessage)> on_message;
    // The stream is over, whoever ended it. Nothing more comes from it.
    std::function<void(absl::Status)> on_broken;
  };

  // Closes the stream, cancels registrations, and waits for both.
  virtual ~CoordinatorLink() = default;

  // One attempt; `done` is called once, on a thread of the link.
  using Registered =
      std::function<void(absl::StatusOr<v1::RegisterStageResponse>)>;
  virtual void Register(const v1::RegisterStageRequest& request,
                        absl::Duration timeout, Registered done) = 0;

  // Dials the session and says `hello`. Replaces a stream that is open.
  virtual void OpenStream(const v1::StageMessage& hello, Listener listener) = 0;

  // Queued and written in order; dropped when no stream is open.
  virtual void Send(v1::StageMessage message) = 0;

  // Ends the stream once what was queued is written, and the coordinator has
  // ended it too.
  virtual void CloseStream() = 0;
  // Ends the stream now, whatever the coordinator does; what was queued is
  // dropped.
  virtual void CancelStream() = 0;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_COORDINATOR_LINK_H_
