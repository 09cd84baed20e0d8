// Causal attention with grouped queries; formulas in ops.h. One row of scores
// at a time.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_ATTENTION_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_ATTENTION_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void AttentionForward(const AttentionForwardArgs& args);
void AttentionBackward(const AttentionBackwardArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_ATTENTION_H_
