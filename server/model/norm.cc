#include "server/model/norm.h"

namespace penstock::server::model {

using device::Shape;
using device::Tensor;

Norm::Norm(const ModelConfig& config, const BatchShape& shape, Layout& stash)
    : centred_(config.family == Family::kGpt2),
      epsilon_(static_cast<float>(config.norm_eps)) {
  y_ = stash.Add("norm", device::DType::kF32,
                 Shape({shape.rows(), config.width}));
  if (centred_) {
    mean_ = stash.Add("mean", device::DType::kF32, Shape({shape.rows()}));
  }
  rstd_ = stash.Add("rstd", device::DType::kF32, Shape({shape.rows()}));
}

Tensor Norm::Mean(std::byte* stash) const {
  return centred_ ? mean_.At(stash) : Tensor();
}

void Norm::Forward(const LayerContext& context, const Tensor& x,
                   std::byte* stash) const {
  context.ops.LayerNormForward(
      context.stream,
      {.x = x,
       .gain = context.parameters.Value(0),
       .bias = centred_ ? context.parameters.Value(1) : Tensor(),
       .epsilon = epsilon_,
       .y = y_.At(stash),
       .mean = Mean(stash),
       .rstd = rstd_.At(stash)});
}

void Norm::BackwardInput(const LayerContext& context,
                         const BackwardArgs& args) const {
  context.ops.LayerNormBackwardInput(context.stream,
                                     {.x = args.x,
                                      .gain = context.parameters.Value(0),
                                      .mean = Mean(args.stash),
                                      .rstd = rstd_.At(args.stash),
                                      .dy = args.dy,
                                      .residual = args.residual,
                                      .dx = args.dx});
}

void Norm::BackwardWeight(const LayerContext& context,
                          const BackwardArgs& args) const {
  const device::Accumulate accumulate = context.parameters.Contribute(0);
  if (centred_) context.parameters.Contribute(1);
  context.ops.LayerNormBackwardWeight(
      context.stream,
      {.x = args.x,
       .mean = Mean(args.stash),
       .rstd = rstd_.At(args.stash),
       .dy = args.dy,
       .dgain = context.parameters.Gradient(0),
       .dbias = centred_ ? context.parameters.Gradient(1) : Tensor(),
       .accumulate = accumulate});
}

}  // namespace penstock::server::model
