// Activations, sums and products element by element; formulas in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_ELEMENTWISE_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_ELEMENTWISE_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void GeluForward(const GeluForwardArgs& args);
void Multiply(const MultiplyArgs& args);
void SwigluForward(const SwigluForwardArgs& args);
void SwigluBackward(const SwigluBackwardArgs& args);
void Add(const AddArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_ELEMENTWISE_H_
