// What a daemon's data listener allows and how long it waits.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_OPTIONS_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace penstock::server::transport::tcp {

// How a data connection notices that the peer's machine is gone.
struct LivenessOptions {
  // TCP keepalive: idle connections are probed after `probe_after`, then every
  // `probe_interval`; `probes` unanswered ones mean that the peer is gone.
  absl::Duration probe_after = absl::Seconds(5);
  absl::Duration probe_interval = absl::Seconds(2);
  int probes = 5;
  // TCP_USER_TIMEOUT: for so long bytes may stay unacknowledged, or the window
  // of a stopped peer closed.
  absl::Duration unacknowledged = absl::Seconds(15);
};

struct ListenerOptions {
  // The numeric address of an interface; the kernel chooses port 0.
  std::string address = "127.0.0.1:0";

  // Connections that have not yet proved a secret: how many are kept, and for
  // how long.
  int max_strangers = 64;
  absl::Duration stranger_timeout = absl::Seconds(2);

  LivenessOptions liveness;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_OPTIONS_H_
