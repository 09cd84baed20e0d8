#include "server/model/block.h"

#include <algorithm>

namespace penstock::server::model {

using device::Shape;
using device::Tensor;

Block::Block(const ModelConfig& config, int64_t block, const BatchShape& shape,
             const RopeTables* tables)
    : attention_(config, block, shape, tables), mlp_(config, block, shape) {
  const Shape residual({shape.rows(), config.width});
  attention_stash_ = stash_.AddBlock(attention_.stash_bytes());
  middle_ = stash_.Add("middle", kResidualType, residual);
  mlp_stash_ = stash_.AddBlock(mlp_.stash_bytes());
  attention_kept_ = kept_.AddBlock(attention_.kept_bytes());
  mlp_kept_ = kept_.AddBlock(mlp_.kept_bytes());
  scratch_.AddBlock(std::max(attention_.scratch_bytes(), mlp_.scratch_bytes()));
  middle_gradient_ =
      (attention_.weight_needs_output_gradient() ? kept_ : scratch_)
          .Add("middle gradient", kResidualType, residual);
}

// The halves' scratch lies at the start of ours.
LayerContext Block::MlpContext(const LayerContext& context) const {
  LayerContext mlp = context;
  mlp.parameters = context.parameters.From(attention_.groups());
  return mlp;
}

Tensor Block::MiddleGradient(const LayerContext& context,
                             std::byte* kept) const {
  return middle_gradient_.At(
      attention_.weight_needs_output_gradient() ? kept : context.scratch);
}

LayerBackward Block::AttentionArgs(const LayerContext& context,
                                   const LayerBackward& args) const {
  return {.x = args.x,
          .dy = MiddleGradient(context, args.kept),
          .dx = args.dx,
          .stash = args.stash + attention_stash_,
          .kept = args.kept + attention_kept_};
}

LayerBackward Block::MlpArgs(const LayerContext& context,
                             const LayerBackward& args) const {
  return {.x = middle_.At(args.stash),
          .dy = args.dy,
          .dx = MiddleGradient(context, args.kept),
          .stash = args.stash + mlp_stash_,
          .kept = args.kept + mlp_kept_};
}

void Block::Forward(const LayerContext& context,
                    const LayerForward& args) const {
  const Tensor middle = middle_.At(args.stash);
  attention_.Forward(context, {.x = args.x,
                               .y = middle,
                               .stash = args.stash + attention_stash_,
                               .mode = args.mode});
  mlp_.Forward(MlpContext(context), {.x = middle,
                                     .y = args.y,
                                     .stash = args.stash + mlp_stash_,
                                     .mode = args.mode});
}

void Block::BackwardInput(const LayerContext& context,
                          const LayerBackward& args) const {
  mlp_.BackwardInput(MlpContext(context), MlpArgs(context, args));
  attention_.BackwardInput(context, AttentionArgs(context, args));
}

void Block::BackwardWeight(const LayerContext& context,
                           const LayerBackward& args) const {
  mlp_.BackwardWeight(MlpContext(context), MlpArgs(context, args));
  attention_.BackwardWeight(context, AttentionArgs(context, args));
}

}  // namespace penstock::server::model
