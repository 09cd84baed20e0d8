// What all streams but those of virtual/ have in common: no time but the
// clock's.
#ifndef PENSTOCK_SERVER_DEVICE_UNMODELLED_STREAM_H_
#define PENSTOCK_SERVER_DEVICE_UNMODELLED_STREAM_H_

#include <optional>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/device/device.h"

namespace penstock::server::device {

// A stream whose work takes the time that it takes. Thread-compatible. A class
// of its own and no default in Stream: whoever adds a device says which of the
// two it is.
class UnmodelledStream : public Stream {
 public:
  void Occupy(absl::Duration /*time*/, const Event& /*stop*/) final {}
  std::optional<common::time::MonotonicTime> modelled_now() const final {
    return std::nullopt;
  }
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_UNMODELLED_STREAM_H_
