#include "server/device/reference/reference_ops.h"

#include "server/device/host/inline_stream.h"
#include "server/device/host/memory_ops.h"
#include "server/device/reference/attention.h"
#include "server/device/reference/cross_entropy.h"
#include "server/device/reference/dropout.h"
#include "server/device/reference/elementwise.h"
#include "server/device/reference/embedding.h"
#include "server/device/reference/layer_norm.h"
#include "server/device/reference/linear.h"
#include "server/device/reference/optimizer.h"
#include "server/device/reference/rope.h"

namespace penstock::server::device::reference {

using host::EnterInlineOp;

int64_t ReferenceOps::PackedWeightBytes(int64_t /*in*/, int64_t /*out*/) const {
  return 0;
}

// The oracle's loops have short-lived vectors of the host's heap.
int64_t ReferenceOps::ScratchBytes(const OpSizes& /*sizes*/) const { return 0; }

absl::Status ReferenceOps::ReserveScratch(const OpSizes& /*sizes*/) {
  return absl::OkStatus();
}

void ReferenceOps::PackWeight(Stream& /*stream*/, const Weight& /*weight*/) {}

void ReferenceOps::LinearForward(Stream& stream,
                                 const LinearForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LinearForward(args);
}

void ReferenceOps::LinearBackwardInput(Stream& stream,
                                       const LinearBackwardInputArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LinearBackwardInput(args);
}

void ReferenceOps::LinearBackwardWeight(Stream& stream,
                                        const LinearBackwardWeightArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LinearBackwardWeight(args);
}

void ReferenceOps::EmbeddingForward(Stream& stream,
                                    const EmbeddingForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::EmbeddingForward(args);
}

void ReferenceOps::EmbeddingBackward(Stream& stream,
                                     const EmbeddingBackwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::EmbeddingBackward(args);
}

void ReferenceOps::LayerNormForward(Stream& stream,
                                    const LayerNormForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LayerNormForward(args);
}

void ReferenceOps::LayerNormBackwardInput(
    Stream& stream, const LayerNormBackwardInputArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LayerNormBackwardInput(args);
}

void ReferenceOps::LayerNormBackwardWeight(
    Stream& stream, const LayerNormBackwardWeightArgs& args) {
  if (EnterInlineOp(stream, args)) reference::LayerNormBackwardWeight(args);
}

void ReferenceOps::Rope(Stream& stream, const RopeArgs& args) {
  if (EnterInlineOp(stream, args)) reference::Rope(args);
}

void ReferenceOps::AttentionForward(Stream& stream,
                                    const AttentionForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::AttentionForward(args);
}

void ReferenceOps::AttentionBackward(Stream& stream,
                                     const AttentionBackwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::AttentionBackward(args);
}

void ReferenceOps::GeluForward(Stream& stream, const GeluForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::GeluForward(args);
}

void ReferenceOps::Multiply(Stream& stream, const MultiplyArgs& args) {
  if (EnterInlineOp(stream, args)) reference::Multiply(args);
}

void ReferenceOps::SwigluForward(Stream& stream,
                                 const SwigluForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::SwigluForward(args);
}

void ReferenceOps::SwigluBackward(Stream& stream,
                                  const SwigluBackwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::SwigluBackward(args);
}

void ReferenceOps::Add(Stream& stream, const AddArgs& args) {
  if (EnterInlineOp(stream, args)) reference::Add(args);
}

void ReferenceOps::ApplyDropout(Stream& stream, const DropoutArgs& args) {
  if (EnterInlineOp(stream, args)) reference::ApplyDropout(args);
}

void ReferenceOps::CrossEntropyForward(Stream& stream,
                                       const CrossEntropyForwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::CrossEntropyForward(args);
}

void ReferenceOps::CrossEntropyBackward(Stream& stream,
                                        const CrossEntropyBackwardArgs& args) {
  if (EnterInlineOp(stream, args)) reference::CrossEntropyBackward(args);
}

void ReferenceOps::Adamw(Stream& stream, const AdamwArgs& args) {
  if (EnterInlineOp(stream, args)) reference::Adamw(args);
}

void ReferenceOps::Sgd(Stream& stream, const SgdArgs& args) {
  if (EnterInlineOp(stream, args)) reference::Sgd(args);
}

void ReferenceOps::SumSquares(Stream& stream, const SumSquaresArgs& args) {
  if (EnterInlineOp(stream, args)) reference::SumSquares(args);
}

void ReferenceOps::Fill(Stream& stream, const FillArgs& args) {
  if (EnterInlineOp(stream, args)) host::Fill(args);
}

void ReferenceOps::Copy(Stream& stream, const CopyArgs& args) {
  if (EnterInlineOp(stream, args)) host::Copy(args);
}

}  // namespace penstock::server::device::reference
