// The embedding layer: y = dropout(tokens[id] + positions[t]); llama has no
// positions and no dropout here. It has no input gradient.
#ifndef PENSTOCK_SERVER_MODEL_EMBEDDING_H_
#define PENSTOCK_SERVER_MODEL_EMBEDDING_H_

#include <cstdint>

#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// Immutable.
class Embedding final : public Layer {
 public:
  Embedding(const ModelConfig& config, const BatchShape& shape);

  int64_t stash_bytes() const override { return 0; }
  int64_t kept_bytes() const override { return kept_.bytes(); }
  int64_t scratch_bytes() const override { return 0; }
  bool weight_needs_output_gradient() const override { return dropout_ == 0; }
  void Forward(const LayerContext& context,
               const LayerForward& args) const override;
  void BackwardInput(const LayerContext& context,
                     const LayerBackward& args) const override;
  void BackwardWeight(const LayerContext& context,
                      const LayerBackward& args) const override;

 private:
  const bool positions_;
  const double dropout_;
  const device::Shape samples_;  // (batch, seq, width)
  Layout kept_;
  Field gradient_;  // In kept, with dropout only: the sum's gradient.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_EMBEDDING_H_
