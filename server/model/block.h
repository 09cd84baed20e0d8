// A transformer block: attention, then the MLP, each on the residual stream.
#ifndef PENSTOCK_SERVER_MODEL_BLOCK_H_
#define PENSTOCK_SERVER_MODEL_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "server/model/attention.h"
#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/mlp.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// Immutable.
class Block final : public Layer {
 public:
  Block(const ModelConfig& config, int64_t block, const BatchShape& shape,
        const RopeTables* tables);

  int64_t stash_bytes() const override { return stash_.bytes(); }
  int64_t kept_bytes() const override { return kept_.bytes(); }
  int64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool weight_needs_output_gradient() const override {
    return mlp_.weight_needs_output_gradient();
  }
  void Forward(const LayerContext& context,
               const LayerForward& args) const override;
  void BackwardInput(const LayerContext& context,
                     const LayerBackward& args) const override;
  void BackwardWeight(const LayerContext& context,
                      const LayerBackward& args) const override;

 private:
  LayerContext MlpContext(const LayerContext& context) const;
  // The gradient of the residual stream between the halves: kept where W of
  // attention reads it, else scratch.
  device::Tensor MiddleGradient(const LayerContext& context,
                                std::byte* kept) const;
  LayerBackward AttentionArgs(const LayerContext& context,
                              const LayerBackward& args) const;
  LayerBackward MlpArgs(const LayerContext& context,
                        const LayerBackward& args) const;

  const Attention attention_;
  const Mlp mlp_;
  Layout stash_, kept_, scratch_;
  int64_t attention_stash_ = 0, mlp_stash_ = 0;
  int64_t attention_kept_ = 0, mlp_kept_ = 0;
  Field middle_;           // Residual stream between the halves, in the stash.
  Field middle_gradient_;  // In kept or scratch.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_BLOCK_H_
