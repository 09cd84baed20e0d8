#include "server/model/mlp.h"

namespace penstock::server::model {

using device::DType;
using device::Shape;
using device::Tensor;

Mlp::Mlp(const ModelConfig& config, int64_t block, const BatchShape& shape)
    : family_(config.family),
      ffn_width_(config.ffn_width),
      norm_(config, shape, stash_),
      up_(norm_.groups(), config.has_bias() ? norm_.groups() + 1 : kNoBias),
      down_(up_.end(), config.has_bias() ? up_.end() + 1 : kNoBias),
      residual_({.rate = config.residual_dropout(),
                 .site = BlockDropoutSite(block, DropoutSite::kMlpOutput),
                 .shape = shape,
                 .width = config.width},
                kept_) {
  const int64_t rows = shape.rows(), ffn = config.ffn_width;
  inner_ = stash_.Add("inner", DType::kF32,
                      Shape({rows, family_ == Family::kGpt2 ? ffn : 2 * ffn}));
  active_ = stash_.Add("active", DType::kF32, Shape({rows, ffn}));
  dnorm_ = kept_.Add("norm gradient", DType::kF32, Shape({rows, config.width}));
  branch_ = scratch_.Add("branch", DType::kF32, Shape({rows, config.width}));
  dactive_ = scratch_.Add("active gradient", DType::kF32, Shape({rows, ffn}));
}

void Mlp::Activate(const LayerContext& context, std::byte* stash) const {
  const Tensor inner = inner_.At(stash), active = active_.At(stash);
  if (family_ == Family::kGpt2) {
    context.ops.GeluForward(context.stream,
                            {.x = inner, .y = active, .slope = inner});
    return;
  }
  context.ops.SwigluForward(context.stream,
                            {.gate = inner.Columns(0, ffn_width_),
                             .up = inner.Columns(ffn_width_, 2 * ffn_width_),
                             .y = active});
}

void Mlp::ActivateBackward(const LayerContext& context, const Tensor& dactive,
                           std::byte* stash) const {
  const Tensor inner = inner_.At(stash);
  if (family_ == Family::kGpt2) {
    context.ops.Multiply(context.stream,
                         {.a = dactive, .b = inner, .y = inner});
    return;
  }
  const Tensor gate = inner.Columns(0, ffn_width_);
  const Tensor up = inner.Columns(ffn_width_, 2 * ffn_width_);
  context.ops.SwigluBackward(
      context.stream,
      {.gate = gate, .up = up, .dy = dactive, .dgate = gate, .dup = up});
}

void Mlp::Forward(const LayerContext& context, const LayerForward& args) const {
  norm_.Forward(context, args.x, args.stash);
  up_.Forward(context, norm_.Output(args.stash), inner_.At(args.stash));
  Activate(context, args.stash);
  if (!args.y.present()) return;  // A replay: nobody reads the output.
  const Tensor branch = branch_.At(context.scratch);
  down_.Forward(context, active_.At(args.stash), branch);
  residual_.Forward(
      context, {.x = args.x, .branch = branch, .y = args.y, .mode = args.mode});
}

void Mlp::BackwardInput(const LayerContext& context,
                        const LayerBackward& args) const {
  residual_.Backward(context, args.dy, args.kept);
  const Tensor dactive = dactive_.At(context.scratch);
  down_.BackwardInput(context, residual_.BranchGradient(args.dy, args.kept),
                      dactive);
  ActivateBackward(context, dactive, args.stash);
  const Tensor dnorm = dnorm_.At(args.kept);
  up_.BackwardInput(context, inner_.At(args.stash), dnorm);
  norm_.BackwardInput(context, {.x = args.x,
                                .dy = dnorm,
                                .residual = args.dy,
                                .dx = args.dx,
                                .stash = args.stash});
}

void Mlp::BackwardWeight(const LayerContext& context,
                         const LayerBackward& args) const {
  down_.BackwardWeight(context, active_.At(args.stash),
                       residual_.BranchGradient(args.dy, args.kept));
  up_.BackwardWeight(context, norm_.Output(args.stash), inner_.At(args.stash));
  norm_.BackwardWeight(
      context, {.x = args.x, .dy = dnorm_.At(args.kept), .stash = args.stash});
}

}  // namespace penstock::server::model
