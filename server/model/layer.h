// A layer of the pipeline: embedding, block or head.
//
// A layer is math and layouts, no memory of its own: each call gets the places
// to work in. It is built for one batch shape, and what it needs is a function
// of shapes alone:
//
//   stash    written by Forward, held until BackwardInput and BackwardWeight
//   kept     written by BackwardInput, held until BackwardWeight
//   scratch  within one call, shared by all layers of a rank
//
// A full backward is BackwardInput and then BackwardWeight, exactly the same
// kernels, so B and a split I ... W give the same bits. Recompute replays
// Forward from the kept input. BackwardInput is called once per Forward: what
// only it reads of the stash it overwrites with what BackwardWeight reads
// there, so that nothing is held longer than it is read (held_bytes_test.cc).
//
// At a layer's boundary activation and gradient are materialised in
// kResidualType; nothing wider crosses it (docs/numerics.md).
#ifndef PENSTOCK_SERVER_MODEL_LAYER_H_
#define PENSTOCK_SERVER_MODEL_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/device/device.h"
#include "server/device/ops.h"
#include "server/device/tensor.h"
#include "server/model/model_config.h"
#include "server/model/parameters.h"

namespace penstock::server::model {

// Type of activations and their gradients between layers.
inline constexpr device::DType kResidualType = device::DType::kF32;

// kEvaluate: dropout is off.
enum class Mode { kTrain, kEvaluate };

// What every call gets. Borrowed for the call; memory until the stream has run
// it.
struct LayerContext {
  device::Ops& ops;
  device::Stream& stream;
  LayerParameters parameters;    // This layer's.
  device::Tensor position;       // i64 (2): step, first global sample.
  std::byte* scratch = nullptr;  // scratch_bytes(), contents undefined.
  uint64_t seed = 0;             // Of the job's dropout.
};

struct LayerForward {
  // (rows, width); embedding: ids, i32 (batch, seq).
  device::Tensor x;
  // (rows, width) (=); absent for the head, and in a replay (recompute), where
  // only the stash is wanted.
  device::Tensor y;
  std::byte* stash = nullptr;
  Mode mode = Mode::kTrain;
  // Head only.
  device::Tensor labels;          // i32 (rows)
  device::Tensor sequence_loss;   // f64 (batch) (=) nats
  device::Tensor sequence_valid;  // i64 (batch) (=)
};

struct LayerBackward {
  device::Tensor x;       // As in Forward.
  device::Tensor labels;  // Head only.
  // (rows, width); absent for the head. BackwardWeight reads it only where
  // weight_needs_output_gradient().
  device::Tensor dy;
  // (rows, width) (=), not overlapping dy; absent for the embedding and in
  // BackwardWeight.
  device::Tensor dx;
  std::byte* stash = nullptr;
  std::byte* kept = nullptr;
};

// Immutable. Calls enqueue and return.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual int64_t stash_bytes() const = 0;
  virtual int64_t kept_bytes() const = 0;
  virtual int64_t scratch_bytes() const = 0;
  // Whether BackwardWeight reads dy: then dy must outlive BackwardInput.
  virtual bool weight_needs_output_gradient() const = 0;

  virtual void Forward(const LayerContext& context,
                       const LayerForward& args) const = 0;
  virtual void BackwardInput(const LayerContext& context,
                             const LayerBackward& args) const = 0;
  // Adds to the gradients (or stores, first in a step): in ascending order of
  // micro-batches, which is the caller's duty.
  virtual void BackwardWeight(const LayerContext& context,
                              const LayerBackward& args) const = 0;
};

// The tables of rotary embeddings that llama blocks read, f32
// (seq, head_dim / 2) each. Absent for gpt2.
struct RopeTables {
  device::Tensor cosine;
  device::Tensor sine;
};

// The parts of a pipeline. `tables` must outlive the layer.
std::unique_ptr<Layer> MakeEmbedding(const ModelConfig& config,
                                     const BatchShape& shape);
std::unique_ptr<Layer> MakeBlock(const ModelConfig& config, int64_t block,
                                 const BatchShape& shape,
                                 const RopeTables* tables);
std::unique_ptr<Layer> MakeHead(const ModelConfig& config,
                                const BatchShape& shape);

// Dropout sites (docs/numerics.md), numbered independently of K and chunks.
enum class DropoutSite {
  kAttentionProbabilities,
  kAttentionOutput,
  kMlpOutput
};
inline constexpr int32_t kEmbeddingDropoutSite = 0;
int32_t BlockDropoutSite(int64_t block, DropoutSite site);

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_LAYER_H_
