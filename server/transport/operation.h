// What both transports keep of a Send or Receive until it is done.
#ifndef PENSTOCK_SERVER_TRANSPORT_OPERATION_H_
#define PENSTOCK_SERVER_TRANSPORT_OPERATION_H_

#include <optional>

#include "absl/status/status.h"
#include "common/time/clock.h"
#include "server/device/host_event.h"
#include "server/device/tensor.h"
#include "server/transport/transport.h"

namespace penstock::server::transport {

// Thread-compatible: the lock of what queues it guards it, once it is queued.
struct Operation {
  Tag tag;
  device::Tensor tensor;
  device::HostEvent* done = nullptr;
  bool ready = false;   // Its stream has reached it.
  bool closed = false;  // `done` was signalled; nothing of it is touched again.
};

// Signals the operation's event with `status`, the first time. `at` as
// HostEvent::Signal's.
void Finish(Operation& operation, const absl::Status& status,
            std::optional<common::time::MonotonicTime> at = std::nullopt);

}  // namespace penstock::server::transport

#endif  // PENSTOCK_SERVER_TRANSPORT_OPERATION_H_
