#include "coordinator/planner/chunk_memory.h"

#include <algorithm>

namespace penstock::coordinator::planner {
namespace {

constexpr int64_t kWord = 4;  // f32, i32
constexpr int64_t kLong = 8;  // f64, i64

// What one layer asks for. Names as in the stages' layers.
struct LayerMemory {
  int64_t stash = 0;                   // F -> W
  int64_t kept = 0;                    // I -> W
  int64_t scratch = 0;                 // Within a call.
  bool keeps_input = true;             // An activation; else ids.
  bool keeps_output_gradient = false;  // W reads it.
};

int64_t Words(int64_t count) { return Aligned(count * kWord); }

class Layers {
 public:
  Layers(const ModelShape& model, const BatchShape& batch)
      : model_(model),
        rows_(batch.rows()),
        gpt2_(model.family == Family::kGpt2),
        // Dropout of whole rows: gpt2 only.
        drops_(gpt2_ && model.dropout) {}

  int64_t Residual() const { return Words(rows_ * model_.width); }

  LayerMemory Embedding() const {
    return {.kept = drops_ ? Residual() : 0,
            .keeps_input = false,
            .keeps_output_gradient = !drops_};
  }

  LayerMemory Block() const {
    const LayerMemory attention = Attention(), mlp = Mlp();
    return {.stash = attention.stash + Residual() + mlp.stash,
            .kept = attention.kept + mlp.kept + (drops_ ? 0 : Residual()),
            .scratch = std::max(attention.scratch, mlp.scratch) +
                       (drops_ ? Residual() : 0),
            .keeps_output_gradient = !drops_};
  }

  LayerMemory Head() const {
    return {.stash = Norm() + Words(rows_ * model_.vocab) + Words(rows_),
            .kept = Residual()};
  }

 private:
  // Output, mean (gpt2 only), reciprocal deviation.
  int64_t Norm() const { return Residual() + (gpt2_ ? 2 : 1) * Words(rows_); }

  LayerMemory Attention() const {
    const int64_t queries = model_.heads * model_.head_dim;
    const int64_t all = queries + 2 * model_.kv_heads * model_.head_dim;
    return {.stash = Norm() + Words(rows_ * all) + Words(rows_ * queries) +
                     Words(rows_ * model_.heads),
            .kept = (drops_ ? Residual() : 0) + Residual(),
            .scratch = Words(rows_ * std::max(model_.width, queries))};
  }

  LayerMemory Mlp() const {
    const int64_t ffn = Words(rows_ * model_.ffn_width);
    return {.stash = Norm() +
                     Words(rows_ * model_.ffn_width * (gpt2_ ? 1 : 2)) + ffn,
            .kept = (drops_ ? Residual() : 0) + Residual(),
            .scratch = Residual() + ffn};
  }

  const ModelShape& model_;
  const int64_t rows_;
  const bool gpt2_;
  const bool drops_;
};

}  // namespace

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

ChunkMemory PredictChunk(const ModelShape& model, const BatchShape& batch,
                         const StageLayers& layers, Recompute recompute) {
  const bool replays = recompute == Recompute::kFull;
  const Layers shapes(model, batch);
  const int64_t residual = shapes.Residual();
  ChunkMemory memory;
  memory.boundary = residual;

  // Position; ids; labels.
  memory.slot = Aligned(2 * kLong);
  if (layers.embedding) memory.slot += Words(batch.rows());
  if (layers.head) memory.slot += Words(batch.rows());

  int64_t stash = 0, kept = 0, scratch = 0, count = 0;
  const auto add = [&](const LayerMemory& layer, int64_t n) {
    if (n == 0) return;
    count += n;
    stash = std::max(stash, layer.stash);
    kept = std::max(kept, layer.kept);
    scratch = std::max(scratch, layer.scratch);
    memory.slot +=
        n * ((layer.keeps_input ? residual : 0) + (replays ? 0 : layer.stash));
    memory.held += n * ((layer.keeps_output_gradient ? residual : 0) +
                        layer.kept + (replays ? layer.stash : 0));
  };
  if (layers.embedding) add(shapes.Embedding(), 1);
  add(shapes.Block(), layers.blocks());
  if (layers.head) add(shapes.Head(), 1);

  // Gradients between layers take turns in two places.
  memory.workspace =
      scratch + kept + std::min<int64_t>(count - 1, 2) * residual;
  if (replays) {
    memory.workspace += stash;
    if (layers.head) memory.workspace += 2 * Aligned(batch.micro_batch * kLong);
  }
  if (model.family == Family::kLlama && layers.blocks() > 0) {
    memory.constants = 2 * Words(batch.sequence_length * (model.head_dim / 2));
  }
  return memory;
}

}  // namespace penstock::coordinator::planner
