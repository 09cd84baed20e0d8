// The head: final norm, projection to the vocabulary, and the loss, summed over
// the valid tokens of each sequence. It has no output activation: its gradient
// starts from the loss itself, un-normalised (docs/numerics.md).
//
// The logits stay in the stash and become their gradient in I.
#ifndef PENSTOCK_SERVER_MODEL_HEAD_H_
#define PENSTOCK_SERVER_MODEL_HEAD_H_

#include <cstdint>

#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"
#include "server/model/norm.h"
#include "server/model/projection.h"

namespace penstock::server::model {

// Immutable.
class Head final : public Layer {
 public:
  Head(const ModelConfig& config, const BatchShape& shape);

  int64_t stash_bytes() const override { return stash_.bytes(); }
  int64_t kept_bytes() const override { return kept_.bytes(); }
  int64_t scratch_bytes() const override { return 0; }
  bool weight_needs_output_gradient() const override { return false; }
  void Forward(const LayerContext& context,
               const LayerForward& args) const override;
  void BackwardInput(const LayerContext& context,
                     const LayerBackward& args) const override;
  void BackwardWeight(const LayerContext& context,
                      const LayerBackward& args) const override;

 private:
  const int64_t seq_;
  Layout stash_, kept_;
  const Norm norm_;
  const Projection projection_;
  Field logits_, logsum_;  // In the stash: (rows, vocab), (rows).
  Field dnorm_;            // In kept.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_HEAD_H_
