// The first half of a block: y = x + dropout(projection(attention(norm(x)))).
//
// q, k and v are columns of one product (GPT-2's c_attn; llama's three matrices
// as one group). Llama turns q and k by rotary embeddings in place. Their
// gradients replace them in I, so that W's share takes no further place.
#ifndef PENSTOCK_SERVER_MODEL_ATTENTION_H_
#define PENSTOCK_SERVER_MODEL_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "server/device/ops.h"
#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"
#include "server/model/norm.h"
#include "server/model/projection.h"
#include "server/model/residual.h"

namespace penstock::server::model {

// Immutable.
class Attention final : public Layer {
 public:
  // `tables` is borrowed, llama only.
  Attention(const ModelConfig& config, int64_t block, const BatchShape& shape,
            const RopeTables* tables);

  // Parameter groups that it uses, from the block's first on.
  int groups() const { return out_.end(); }

  int64_t stash_bytes() const override { return stash_.bytes(); }
  int64_t kept_bytes() const override { return kept_.bytes(); }
  int64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool weight_needs_output_gradient() const override {
    return residual_.passes_gradient();
  }
  void Forward(const LayerContext& context,
               const LayerForward& args) const override;
  void BackwardInput(const LayerContext& context,
                     const LayerBackward& args) const override;
  void BackwardWeight(const LayerContext& context,
                      const LayerBackward& args) const override;

 private:
  // The columns of a (rows, (heads + 2 kv_heads) * head_dim) tensor.
  struct Columns {
    device::Tensor q, k, v;
    device::Tensor rotated;  // q and k together.
  };
  Columns Split(const device::Tensor& qkv) const;
  void Rotate(const LayerContext& context, const device::Tensor& qkv,
              device::RopeDirection direction) const;

  const device::AttentionShape shape_;
  const double dropout_;
  const int32_t dropout_site_;
  const RopeTables* const tables_;  // Null for gpt2.

  Layout stash_, kept_, scratch_;
  const Norm norm_;
  const Projection in_, out_;
  const Residual residual_;
  // In the stash. qkv_: after I its gradient.
  Field qkv_, y_, logsum_;
  Field dnorm_;   // In kept.
  Field branch_;  // In scratch.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_ATTENTION_H_
