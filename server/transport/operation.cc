#include "server/transport/operation.h"

namespace penstock::server::transport {

void Finish(Operation& operation, const absl::Status& status,
            std::optional<common::time::MonotonicTime> at) {
  if (operation.closed) return;
  operation.closed = true;
  operation.done->Signal(status, at);
}

}  // namespace penstock::server::transport
