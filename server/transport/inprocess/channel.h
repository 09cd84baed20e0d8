// What an exchange knows of its channels and of the ranks at their ends. Plain
// values; the exchange's lock guards them all.
#ifndef PENSTOCK_SERVER_TRANSPORT_INPROCESS_CHANNEL_H_
#define PENSTOCK_SERVER_TRANSPORT_INPROCESS_CHANNEL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/device/host_event.h"
#include "server/transport/operation.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::inprocess {

struct Channel;

// One rank's transport.
struct Member {
  std::string name;
  Failure failure;  // The first, or the cause of Abort.
  // Fails with that: Transport::ended().
  std::shared_ptr<device::HostEvent> ended;
  bool goodbye = false;
  bool gone = false;  // Aborted or destroyed: to its peers, dead.
  std::function<void(const Failure&)> on_failure;
  std::vector<Channel*> channels;  // Each once.
  int callbacks = 0;               // Calls of on_failure under way.
};

// One end of a channel.
struct End {
  Member* member = nullptr;  // Null until the rank has joined, and once gone.
  std::string name;          // Stays when the member is gone.
  int capacity = 0;
  std::deque<std::shared_ptr<Operation>> operations;
};

struct Channel {
  Edge edge;
  End source;
  End target;
  bool copying = false;    // The two heads are being copied, without the lock.
  bool scheduled = false;  // Waits for its delay.
  bool stalled = false;
  int64_t delivered = 0;
};

}  // namespace penstock::server::transport::inprocess

#endif  // PENSTOCK_SERVER_TRANSPORT_INPROCESS_CHANNEL_H_
