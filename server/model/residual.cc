#include "server/model/residual.h"

namespace penstock::server::model {

using device::Shape;
using device::Tensor;

device::Dropout DropoutOf(const LayerContext& context, double rate,
                          int32_t site, Mode mode) {
  return {.rate = mode == Mode::kTrain ? static_cast<float>(rate) : 0.0f,
          .seed = context.seed,
          .site = site,
          .position = context.position};
}

Residual::Residual(const Options& options, Layout& kept) : options_(options) {
  if (passes_gradient()) return;
  gradient_ = kept.Add("branch gradient", kResidualType,
                       Shape({options.shape.rows(), options.width}));
}

Tensor Residual::Samples(const Tensor& rows) const {
  return rows.Reshaped(
      Shape({options_.shape.batch, options_.shape.seq, options_.width}));
}

void Residual::Forward(const LayerContext& context,
                       const ForwardArgs& args) const {
  const device::Dropout dropout =
      DropoutOf(context, options_.rate, options_.site, args.mode);
  if (dropout.rate == 0) {
    context.ops.Add(context.stream,
                    {.a = args.x, .b = args.branch, .y = args.y});
    return;
  }
  context.ops.ApplyDropout(context.stream, {.x = Samples(args.branch),
                                            .dropout = dropout,
                                            .residual = Samples(args.x),
                                            .y = Samples(args.y)});
}

void Residual::Backward(const LayerContext& context, const Tensor& dy,
                        std::byte* kept) const {
  if (passes_gradient()) return;
  context.ops.ApplyDropout(context.stream,
                           {.x = Samples(dy),
                            .dropout = DropoutOf(context, options_.rate,
                                                 options_.site, Mode::kTrain),
                            .y = Samples(gradient_.At(kept))});
}

Tensor Residual::BranchGradient(const Tensor& dy, std::byte* kept) const {
  return passes_gradient() ? dy : gradient_.At(kept);
}

}  // namespace penstock::server::model
