// Conversions, fills and copies; formulas in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_MEMORY_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_MEMORY_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void Convert(const ConvertArgs& args);
void Fill(const FillArgs& args);
void Copy(const CopyArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_MEMORY_H_
