#include "server/device/reference/reference_ops.h"

#include "server/device/host/inline_stream.h"
#include "server/device/reference/attention.h"
#include "server/device/reference/cross_entropy.h"
#include "server/device/reference/dropout.h"
#include "server/device/reference/elementwise.h"
#include "server/device/reference/embedding.h"
#include "server/device/reference/layer_norm.h"
#include "server/device/reference/linear.h"
#include "server/device/host/memory_ops.h"
#include "server/device/reference/optimizer.h"
#include "server/device/reference/rope.h"

namespace penstock::server::device::reference {

using host::RunInline;

int64_t ReferenceOps::PackedWeightBytes(int64_t /*in*/, int64_t /*out*/,
                                        WeightLayout /*layout*/) const {
  return 0;
}

void ReferenceOps::PackWeight(Stream& /*stream*/, const Weight& /*weight*/) {}

void ReferenceOps::LinearForward(Stream& stream,
                                 const LinearForwardArgs& args) {
  RunInline(stream, args, reference::LinearForward);
}

void ReferenceOps::LinearBackwardInput(Stream& stream,
                                       const LinearBackwardInputArgs& args) {
  RunInline(stream, args, reference::LinearBackwardInput);
}

void ReferenceOps::LinearBackwardWeight(Stream& stream,
                                        const LinearBackwardWeightArgs& args) {
  RunInline(stream, args, reference::LinearBackwardWeight);
}

void ReferenceOps::EmbeddingForward(Stream& stream,
                                    const EmbeddingForwardArgs& args) {
  RunInline(stream, args, reference::EmbeddingForward);
}

void ReferenceOps::EmbeddingBackward(Stream& stream,
                                     const EmbeddingBackwardArgs& args) {
  RunInline(stream, args, reference::EmbeddingBackward);
}

void ReferenceOps::LayerNormForward(Stream& stream,
                                    const LayerNormForwardArgs& args) {
  RunInline(stream, args, reference::LayerNormForward);
}

void ReferenceOps::LayerNormBackwardInput(
    Stream& stream, const LayerNormBackwardInputArgs& args) {
  RunInline(stream, args, reference::LayerNormBackwardInput);
}

void ReferenceOps::LayerNormBackwardWeight(
    Stream& stream, const LayerNormBackwardWeightArgs& args) {
  RunInline(stream, args, reference::LayerNormBackwardWeight);
}

void ReferenceOps::Rope(Stream& stream, const RopeArgs& args) {
  RunInline(stream, args, reference::Rope);
}

void ReferenceOps::AttentionForward(Stream& stream,
                                    const AttentionForwardArgs& args) {
  RunInline(stream, args, reference::AttentionForward);
}

void ReferenceOps::AttentionBackward(Stream& stream,
                                     const AttentionBackwardArgs& args) {
  RunInline(stream, args, reference::AttentionBackward);
}

void ReferenceOps::GeluForward(Stream& stream, const GeluForwardArgs& args) {
  RunInline(stream, args, reference::GeluForward);
}

void ReferenceOps::Multiply(Stream& stream, const MultiplyArgs& args) {
  RunInline(stream, args, reference::Multiply);
}

void ReferenceOps::SwigluForward(Stream& stream,
                                 const SwigluForwardArgs& args) {
  RunInline(stream, args, reference::SwigluForward);
}

void ReferenceOps::SwigluBackward(Stream& stream,
                                  const SwigluBackwardArgs& args) {
  RunInline(stream, args, reference::SwigluBackward);
}

void ReferenceOps::Add(Stream& stream, const AddArgs& args) {
  RunInline(stream, args, reference::Add);
}

void ReferenceOps::ApplyDropout(Stream& stream, const DropoutArgs& args) {
  RunInline(stream, args, reference::ApplyDropout);
}

void ReferenceOps::CrossEntropyForward(Stream& stream,
                                       const CrossEntropyForwardArgs& args) {
  RunInline(stream, args, reference::CrossEntropyForward);
}

void ReferenceOps::CrossEntropyBackward(Stream& stream,
                                        const CrossEntropyBackwardArgs& args) {
  RunInline(stream, args, reference::CrossEntropyBackward);
}

void ReferenceOps::Adamw(Stream& stream, const AdamwArgs& args) {
  RunInline(stream, args, reference::Adamw);
}

void ReferenceOps::Sgd(Stream& stream, const SgdArgs& args) {
  RunInline(stream, args, reference::Sgd);
}

void ReferenceOps::SumSquares(Stream& stream, const SumSquaresArgs& args) {
  RunInline(stream, args, reference::SumSquares);
}

void ReferenceOps::Convert(Stream& stream, const ConvertArgs& args) {
  RunInline(stream, args, host::Convert);
}

void ReferenceOps::Fill(Stream& stream, const FillArgs& args) {
  RunInline(stream, args, host::Fill);
}

void ReferenceOps::Copy(Stream& stream, const CopyArgs& args) {
  RunInline(stream, args, host::Copy);
}

}  // namespace penstock::server::device::reference
