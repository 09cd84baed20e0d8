#include "server/transport/operation.h"

namespace penstock::server::transport {

void Finish(Operation& operation, const absl::Status& status) {
  if (operation.closed) return;
  operation.closed = true;
  operation.done->Signal(status);
}

}  // namespace penstock::server::transport
