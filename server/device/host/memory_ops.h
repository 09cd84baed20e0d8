// Fills and copies, for every device of the host; formulas in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_HOST_MEMORY_OPS_H_
#define PENSTOCK_SERVER_DEVICE_HOST_MEMORY_OPS_H_

#include "server/device/ops.h"

namespace penstock::server::device::host {

void Fill(const FillArgs& args);
void Copy(const CopyArgs& args);

}  // namespace penstock::server::device::host

#endif  // PENSTOCK_SERVER_DEVICE_HOST_MEMORY_OPS_H_
