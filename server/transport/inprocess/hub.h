// The transport of ranks that share a process: same semantics as the others
// (rendezvous, posted slots, tags, failures), one memcpy a message. For tests,
// with delays and faults to order.
//
//   Hub hub({});
//   auto source = hub.Join("stage-0", {.edges = {{.edge = edge,
//       .role = EdgeRole::kSource, .peer = "stage-1"}}});
//
// The ends of an edge find each other by (epoch, edge); secrets and addresses
// are not looked at.
#ifndef PENSTOCK_SERVER_TRANSPORT_INPROCESS_HUB_H_
#define PENSTOCK_SERVER_TRANSPORT_INPROCESS_HUB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::inprocess {

enum class FaultKind {
  kBreak,  // Both ends fail, as if the peer had died.
  kStall,  // Nothing is delivered any more; both ends stay pending.
};

// Happens to `edge`, of whatever epoch, instead of the delivery of its message
// number `message` (from 0).
struct Fault {
  Edge edge;
  int64_t message = 0;
  FaultKind kind = FaultKind::kBreak;
};

struct HubOptions {
  // When positive, each message is delivered by a thread of the hub after a
  // random time of up to this; messages of different edges overtake each other.
  absl::Duration max_delay = absl::ZeroDuration();
  uint64_t seed = 0;  // Of the delays.
  std::vector<Fault> faults;
  // Of the events' done_at(); null: nobody notes it. Outlives every event.
  const common::time::Clock* clock = nullptr;
};

class Exchange;

// Thread-safe. Transports may outlive it.
class Hub {
 public:
  explicit Hub(const HubOptions& options);
  // Delayed messages that are under way are not delivered any more.
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // `name` is the rank's, for its peers' messages. AlreadyExists when an end of
  // an edge is taken; InvalidArgument for a capacity below 1.
  absl::StatusOr<std::unique_ptr<Transport>> Join(
      const std::string& name, const TransportOptions& options);

 private:
  const common::time::Clock* const clock_;
  // Shared with the transports: the last one of them ends it.
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace penstock::server::transport::inprocess

#endif  // PENSTOCK_SERVER_TRANSPORT_INPROCESS_HUB_H_
