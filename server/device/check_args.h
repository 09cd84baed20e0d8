// Shape and type checks of every op's arguments, shared by all backends.
//
// A wrong shape is our bug, so these are CHECKs that name the argument.
// Backends call CheckArgs first in each op, also on a failed stream.
#ifndef PENSTOCK_SERVER_DEVICE_CHECK_ARGS_H_
#define PENSTOCK_SERVER_DEVICE_CHECK_ARGS_H_

#include "server/device/ops.h"

namespace penstock::server::device {

void CheckArgs(const LinearForwardArgs& args);
void CheckArgs(const LinearBackwardInputArgs& args);
void CheckArgs(const LinearBackwardWeightArgs& args);
void CheckArgs(const EmbeddingForwardArgs& args);
void CheckArgs(const EmbeddingBackwardArgs& args);
void CheckArgs(const LayerNormForwardArgs& args);
void CheckArgs(const LayerNormBackwardInputArgs& args);
void CheckArgs(const LayerNormBackwardWeightArgs& args);
void CheckArgs(const RopeArgs& args);
void CheckArgs(const AttentionForwardArgs& args);
void CheckArgs(const AttentionBackwardArgs& args);
void CheckArgs(const GeluForwardArgs& args);
void CheckArgs(const MultiplyArgs& args);
void CheckArgs(const SwigluForwardArgs& args);
void CheckArgs(const SwigluBackwardArgs& args);
void CheckArgs(const AddArgs& args);
void CheckArgs(const DropoutArgs& args);
void CheckArgs(const CrossEntropyForwardArgs& args);
void CheckArgs(const CrossEntropyBackwardArgs& args);
void CheckArgs(const AdamwArgs& args);
void CheckArgs(const SgdArgs& args);
void CheckArgs(const SumSquaresArgs& args);
void CheckArgs(const FillArgs& args);
void CheckArgs(const CopyArgs& args);

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_CHECK_ARGS_H_
