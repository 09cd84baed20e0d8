#include "server/model/attention.h"

#include <algorithm>
#include <cmath>

#include "common/log/log.h"

namespace penstock::server::model {

using device::DType;
using device::Shape;
using device::Tensor;

namespace {

device::AttentionShape ShapeOf(const ModelConfig& config,
                               const BatchShape& shape) {
  return {.batch = shape.batch,
          .seq = shape.seq,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim,
          .scale = static_cast<float>(
              1 / std::sqrt(static_cast<double>(config.head_dim)))};
}

}  // namespace

Attention::Attention(const ModelConfig& config, int64_t block,
                     const BatchShape& shape, const RopeTables* tables)
    : shape_(ShapeOf(config, shape)),
      dropout_(config.dropout),
      dropout_site_(
          BlockDropoutSite(block, DropoutSite::kAttentionProbabilities)),
      tables_(tables),
      norm_(config, shape, stash_),
      in_(norm_.groups(), config.has_bias() ? norm_.groups() + 1 : kNoBias),
      out_(in_.end(), config.has_bias() ? in_.end() + 1 : kNoBias),
      residual_({.rate = config.residual_dropout(),
                 .site = BlockDropoutSite(block, DropoutSite::kAttentionOutput),
                 .shape = shape,
                 .width = config.width},
                kept_) {
  CHECK_EQ(config.family == Family::kLlama, tables != nullptr);
  const int64_t rows = shape.rows(), q = config.heads * config.head_dim;
  const int64_t all = q + 2 * config.kv_heads * config.head_dim;
  qkv_ = stash_.Add("qkv", DType::kF32, Shape({rows, all}));
  y_ = stash_.Add("attention", DType::kF32, Shape({rows, q}));
  logsum_ = stash_.Add("logsum", DType::kF32,
                       Shape({shape.batch, config.heads, shape.seq}));
  dnorm_ = kept_.Add("norm gradient", DType::kF32, Shape({rows, config.width}));
  // Forward's branch (rows, width) and I's dy of attention (rows, q).
  branch_ = scratch_.Add("branch", DType::kF32,
                         Shape({rows, std::max(config.width, q)}));
}

Attention::Columns Attention::Split(const Tensor& qkv) const {
  const int64_t q = shape_.heads * shape_.head_dim;
  const int64_t kv = shape_.kv_heads * shape_.head_dim;
  return {.q = qkv.Columns(0, q),
          .k = qkv.Columns(q, q + kv),
          .v = qkv.Columns(q + kv, q + 2 * kv),
          .rotated = qkv.Columns(0, q + kv)};
}

void Attention::Rotate(const LayerContext& context, const Tensor& qkv,
                       device::RopeDirection direction) const {
  if (tables_ == nullptr) return;
  context.ops.Rope(context.stream, {.x = Split(qkv).rotated,
                                    .cosine = tables_->cosine,
                                    .sine = tables_->sine,
                                    .seq = shape_.seq,
                                    .head_dim = shape_.head_dim,
                                    .direction = direction});
}

void Attention::Forward(const LayerContext& context,
                        const LayerForward& args) const {
  const Tensor qkv = qkv_.At(args.stash), y = y_.At(args.stash);
  norm_.Forward(context, args.x, args.stash);
  in_.Forward(context, norm_.Output(args.stash), qkv);
  Rotate(context, qkv, device::RopeDirection::kForward);
  const Columns columns = Split(qkv);
  context.ops.AttentionForward(
      context.stream,
      {.shape = shape_,
       .q = columns.q,
       .k = columns.k,
       .v = columns.v,
       .dropout = DropoutOf(context, dropout_, dropout_site_, args.mode),
       .y = y,
       .logsum = logsum_.At(args.stash)});
  const Tensor branch =
      Tensor(branch_.At(context.scratch).data(), DType::kF32, args.x.shape());
  out_.Forward(context, y, branch);
  residual_.Forward(
      context, {.x = args.x, .branch = branch, .y = args.y, .mode = args.mode});
}

void Attention::BackwardInput(const LayerContext& context,
                              const LayerBackward& args) const {
  residual_.Backward(context, args.dy, args.kept);
  const Tensor y = y_.At(args.stash);
  const Tensor dy =
      Tensor(branch_.At(context.scratch).data(), DType::kF32, y.shape());
  out_.BackwardInput(context, residual_.BranchGradient(args.dy, args.kept), dy);
  const Tensor qkv = qkv_.At(args.stash), dnorm = dnorm_.At(args.kept);
  const Columns columns = Split(qkv);
  context.ops.AttentionBackward(
      context.stream,
      {.shape = shape_,
       .q = columns.q,
       .k = columns.k,
       .v = columns.v,
       .y = y,
       .logsum = logsum_.At(args.stash),
       .dropout = DropoutOf(context, dropout_, dropout_site_, Mode::kTrain),
       .dy = dy,
       .dq = columns.q,
       .dk = columns.k,
       .dv = columns.v});
  Rotate(context, qkv, device::RopeDirection::kBackward);
  in_.BackwardInput(context, qkv, dnorm);
  norm_.BackwardInput(context, {.x = args.x,
                                .dy = dnorm,
                                .residual = args.dy,
                                .dx = args.dx,
                                .stash = args.stash});
}

void Attention::BackwardWeight(const LayerContext& context,
                               const LayerBackward& args) const {
  out_.BackwardWeight(context, y_.At(args.stash),
                      residual_.BranchGradient(args.dy, args.kept));
  in_.BackwardWeight(context, norm_.Output(args.stash), qkv_.At(args.stash));
  norm_.BackwardWeight(
      context, {.x = args.x, .dy = dnorm_.At(args.kept), .stash = args.stash});
}

}  // namespace penstock::server::model
