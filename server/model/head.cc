#include "server/model/head.h"

namespace penstock::server::model {

using device::DType;
using device::Shape;
using device::Tensor;

Head::Head(const ModelConfig& config, const BatchShape& shape)
    : seq_(shape.seq),
      norm_(config, shape, stash_),
      projection_(norm_.groups(), kNoBias) {
  logits_ =
      stash_.Add("logits", DType::kF32, Shape({shape.rows(), config.vocab}));
  logsum_ = stash_.Add("logsum", DType::kF32, Shape({shape.rows()}));
  dnorm_ = kept_.Add("norm gradient", DType::kF32,
                     Shape({shape.rows(), config.width}));
}

void Head::Forward(const LayerContext& context,
                   const LayerForward& args) const {
  norm_.Forward(context, args.x, args.stash);
  const Tensor logits = logits_.At(args.stash);
  projection_.Forward(context, norm_.Output(args.stash), logits);
  context.ops.CrossEntropyForward(context.stream,
                                  {.logits = logits,
                                   .labels = args.labels,
                                   .seq = seq_,
                                   .logsum = logsum_.At(args.stash),
                                   .sequence_loss = args.sequence_loss,
                                   .sequence_valid = args.sequence_valid});
}

void Head::BackwardInput(const LayerContext& context,
                         const LayerBackward& args) const {
  const Tensor logits = logits_.At(args.stash), dnorm = dnorm_.At(args.kept);
  context.ops.CrossEntropyBackward(context.stream,
                                   {.logits = logits,
                                    .labels = args.labels,
                                    .logsum = logsum_.At(args.stash)});
  projection_.BackwardInput(context, logits, dnorm);
  norm_.BackwardInput(
      context, {.x = args.x, .dy = dnorm, .dx = args.dx, .stash = args.stash});
}

void Head::BackwardWeight(const LayerContext& context,
                          const LayerBackward& args) const {
  projection_.BackwardWeight(context, norm_.Output(args.stash),
                             logits_.At(args.stash));
  norm_.BackwardWeight(
      context, {.x = args.x, .dy = dnorm_.At(args.kept), .stash = args.stash});
}

}  // namespace penstock::server::model
