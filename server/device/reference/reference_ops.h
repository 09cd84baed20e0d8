// Ops by plain loops (one file an op family beside this one).
#ifndef PENSTOCK_SERVER_DEVICE_REFERENCE_REFERENCE_OPS_H_
#define PENSTOCK_SERVER_DEVICE_REFERENCE_REFERENCE_OPS_H_

#include "server/device/ops.h"

namespace penstock::server::device::reference {

// Runs each op on the calling thread. Weights are used as they are, unpacked.
// Immutable.
class ReferenceOps final : public Ops {
 public:
  int64_t PackedWeightBytes(int64_t in, int64_t out) const override;
  int64_t ScratchBytes(const OpSizes& sizes) const override;
  absl::Status ReserveScratch(const OpSizes& sizes) override;
  void PackWeight(Stream& stream, const Weight& weight) override;

  void LinearForward(Stream& stream, const LinearForwardArgs& args) override;
  void LinearBackwardInput(Stream& stream,
                           const LinearBackwardInputArgs& args) override;
  void LinearBackwardWeight(Stream& stream,
                            const LinearBackwardWeightArgs& args) override;
  void EmbeddingForward(Stream& stream,
                        const EmbeddingForwardArgs& args) override;
  void EmbeddingBackward(Stream& stream,
                         const EmbeddingBackwardArgs& args) override;
  void LayerNormForward(Stream& stream,
                        const LayerNormForwardArgs& args) override;
  void LayerNormBackwardInput(Stream& stream,
                              const LayerNormBackwardInputArgs& args) override;
  void LayerNormBackwardWeight(
      Stream& stream, const LayerNormBackwardWeightArgs& args) override;
  void Rope(Stream& stream, const RopeArgs& args) override;
  void AttentionForward(Stream& stream,
                        const AttentionForwardArgs& args) override;
  void AttentionBackward(Stream& stream,
                         const AttentionBackwardArgs& args) override;
  void GeluForward(Stream& stream, const GeluForwardArgs& args) override;
  void Multiply(Stream& stream, const MultiplyArgs& args) override;
  void SwigluForward(Stream& stream, const SwigluForwardArgs& args) override;
  void SwigluBackward(Stream& stream, const SwigluBackwardArgs& args) override;
  void Add(Stream& stream, const AddArgs& args) override;
  void ApplyDropout(Stream& stream, const DropoutArgs& args) override;
  void CrossEntropyForward(Stream& stream,
                           const CrossEntropyForwardArgs& args) override;
  void CrossEntropyBackward(Stream& stream,
                            const CrossEntropyBackwardArgs& args) override;
  void Adamw(Stream& stream, const AdamwArgs& args) override;
  void Sgd(Stream& stream, const SgdArgs& args) override;
  void SumSquares(Stream& stream, const SumSquaresArgs& args) override;
  void Fill(Stream& stream, const FillArgs& args) override;
  void Copy(Stream& stream, const CopyArgs& args) override;
};

}  // namespace penstock::server::device::reference

#endif  // PENSTOCK_SERVER_DEVICE_REFERENCE_REFERENCE_OPS_H_
