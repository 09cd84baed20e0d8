#include "server/model/embedding.h"

#include "server/model/residual.h"

namespace penstock::server::model {

using device::Shape;
using device::Tensor;

Embedding::Embedding(const ModelConfig& config, const BatchShape& shape)
    : positions_(config.family == Family::kGpt2),
      dropout_(config.residual_dropout()),
      samples_({shape.batch, shape.seq, config.width}) {
  if (dropout_ == 0) return;
  gradient_ = kept_.Add("sum gradient", kResidualType,
                        Shape({shape.rows(), config.width}));
}

void Embedding::Forward(const LayerContext& context,
                        const LayerForward& args) const {
  if (!args.y.present()) return;  // A replay: there is no stash.
  context.ops.EmbeddingForward(
      context.stream,
      {.ids = args.x,
       .tokens = context.parameters.Value(0),
       .positions = positions_ ? context.parameters.Value(1) : Tensor(),
       .y = args.y});
  const device::Dropout dropout =
      DropoutOf(context, dropout_, kEmbeddingDropoutSite, args.mode);
  if (dropout.rate == 0) return;
  const Tensor y = args.y.Reshaped(samples_);
  context.ops.ApplyDropout(context.stream,
                           {.x = y, .dropout = dropout, .y = y});
}

void Embedding::BackwardInput(const LayerContext& context,
                              const LayerBackward& args) const {
  if (dropout_ == 0) return;
  context.ops.ApplyDropout(
      context.stream,
      {.x = args.dy.Reshaped(samples_),
       .dropout =
           DropoutOf(context, dropout_, kEmbeddingDropoutSite, Mode::kTrain),
       .y = gradient_.At(args.kept).Reshaped(samples_)});
}

void Embedding::BackwardWeight(const LayerContext& context,
                               const LayerBackward& args) const {
  const device::Accumulate accumulate = context.parameters.Contribute(0);
  if (positions_) context.parameters.Contribute(1);
  context.ops.EmbeddingBackward(
      context.stream,
      {.ids = args.x,
       .dy = dropout_ == 0 ? args.dy : gradient_.At(args.kept),
       .dtokens = context.parameters.Gradient(0),
       .dpositions = positions_ ? context.parameters.Gradient(1) : Tensor(),
       .accumulate = accumulate});
}

}  // namespace penstock::server::model
