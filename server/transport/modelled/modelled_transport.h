// Gives another transport's messages the times of a modelled network: what it
// has delivered arrives when its bytes would have come over a wire of that
// bandwidth, and the latency later, as schedule::Costs of the coordinator says.
//
//   begin   = max(delivered, the message before has left the wire)
//   arrival = begin + bytes * seconds_per_byte + latency
//
// Nothing is held back: memory is written when the other transport writes it,
// and the events are done later, at both ends of an edge alike. So nobody has
// to act when a message arrives, and a stream that models time (device/virtual)
// knows the moment exactly.
#ifndef PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_TRANSPORT_H_
#define PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_TRANSPORT_H_

#include <memory>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::modelled {

// Of each edge.
struct Wire {
  absl::Duration latency;
  double seconds_per_byte = 0;

  bool takes_time() const {
    return latency > absl::ZeroDuration() || seconds_per_byte > 0;
  }
};

// A transport over `carrier`. `clock` must outlive every event.
std::unique_ptr<Transport> ModelTransfers(std::unique_ptr<Transport> carrier,
                                          const Wire& wire,
                                          const common::time::Clock& clock);

}  // namespace penstock::server::transport::modelled

#endif  // PENSTOCK_SERVER_TRANSPORT_MODELLED_MODELLED_TRANSPORT_H_
