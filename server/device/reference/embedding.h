// Token and position embeddings; formulas in ops.h.
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_EMBEDDING_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_EMBEDDING_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

void EmbeddingForward(const EmbeddingForwardArgs& args);
void EmbeddingBackward(const EmbeddingBackwardArgs& args);

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_EMBEDDING_H_
