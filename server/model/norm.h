// The normalisation that a residual branch and the head begin with: LayerNorm
// (gpt2) or RMSNorm (llama). A piece of other layers' code, not a layer.
#ifndef PENSTOCK_SERVER_MODEL_NORM_H_
#define PENSTOCK_SERVER_MODEL_NORM_H_

#include <cstddef>

#include "server/device/tensor.h"
#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"

namespace penstock::server::model {

// Uses the first groups() parameter groups of its layer: gain, and bias for
// LayerNorm. Immutable.
class Norm {
 public:
  // Adds what it holds from forward to backward to `stash`.
  Norm(const ModelConfig& config, const BatchShape& shape, Layout& stash);

  int groups() const { return centred_ ? 2 : 1; }

  // y = norm(x), into the stash. x is (rows, width).
  void Forward(const LayerContext& context, const device::Tensor& x,
               std::byte* stash) const;
  // Forward's y, which W of the products that read it needs.
  device::Tensor Output(std::byte* stash) const { return y_.At(stash); }

  struct BackwardArgs {
    device::Tensor x;         // Forward's.
    device::Tensor dy;        // (rows, width)
    device::Tensor residual;  // Added to dx, or absent.
    device::Tensor dx;        // (rows, width) (=); I only.
    std::byte* stash = nullptr;
  };
  void BackwardInput(const LayerContext& context,
                     const BackwardArgs& args) const;
  void BackwardWeight(const LayerContext& context,
                      const BackwardArgs& args) const;

 private:
  device::Tensor Mean(std::byte* stash) const;

  const bool centred_;  // LayerNorm.
  const float epsilon_;
  Field y_, mean_, rstd_;
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_NORM_H_
