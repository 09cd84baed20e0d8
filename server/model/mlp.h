// The second half of a block: y = x + dropout(down(f(up(norm(x))))).
//
// gpt2: f is GELU (tanh form) of one product. llama: SwiGLU of two, gate and
// up, which are columns of one product. What f's backward needs is left in the
// stash by forward and replaced by the gradient in I, so that I needs no
// further (rows, ffn_width) tensor.
#ifndef PENSTOCK_SERVER_MODEL_MLP_H_
#define PENSTOCK_SERVER_MODEL_MLP_H_

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
class Mlp final : public Layer {
 public:
  Mlp(const ModelConfig& config, int64_t block, const BatchShape& shape);

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
  void Activate(const LayerContext& context, std::byte* stash) const;
  // Turns inner_ into the gradient of up_'s output, given that of active_.
  void ActivateBackward(const LayerContext& context,
                        const device::Tensor& dactive, std::byte* stash) const;

  const Family family_;
  const int64_t ffn_width_;

  Layout stash_, kept_, scratch_;
  const Norm norm_;
  const Projection up_, down_;
  const Residual residual_;
  // In the stash. inner_: gpt2 (rows, ffn_width), up's output and then the
  // slope of GELU; llama (rows, 2 * ffn_width), gate and up. After I: its
  // gradient. active_: (rows, ffn_width), f's output.
  Field inner_, active_;
  Field dnorm_;             // In kept.
  Field branch_, dactive_;  // In scratch: F's and I's.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_MLP_H_
