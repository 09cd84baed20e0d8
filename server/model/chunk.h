// A chunk (virtual stage): a consecutive run of layers that one rank computes.
//
// The executor owns all memory and gives a chunk the places to work in:
//
//   slot       slot_bytes, one per micro-batch in flight (m mod n_c), from F
//              until the last of I and W
//   held       held_bytes, from a split I to its W, beside the slot
//   workspace  workspace_bytes, within one call; the rank's chunks and calls
//              share one, as they follow each other on one stream
//   boundary   the output and the two gradients are tensors of the caller's:
//              send buffers and received slots of the transport
//
// All sizes are functions of shapes alone; Predict() gives them without a
// device. A slot begins with what the host fills (position, ids, labels), then
// the input activation, into which a received one lands without a copy:
//
//   [position | ids? | labels?] [input?] [layer inputs and stashes ...]
//
// With Recompute::kFull a slot holds only each layer's input, and each layer is
// replayed once just before its I, into the workspace (B) or `held` (I, W).
#ifndef PENSTOCK_SERVER_MODEL_CHUNK_H_
#define PENSTOCK_SERVER_MODEL_CHUNK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/device/ops.h"
#include "server/device/tensor.h"
#include "server/model/layer.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"
#include "server/model/parameters.h"

namespace penstock::server::model {

enum class Recompute { kNone, kFull };

struct ChunkOptions {
  ModelConfig model;
  LayerRange range;
  BatchShape shape;
  Recompute recompute = Recompute::kNone;
  uint64_t seed = 0;  // Of dropout: the job's.
};

// Bytes that a chunk needs; the planner predicts the same with formulas of its
// own and a test compares them.
struct ChunkMemory {
  int64_t slot = 0;       // A micro-batch in flight, F -> (I, W).
  int64_t held = 0;       // A micro-batch between I and W, in addition.
  int64_t workspace = 0;  // A rank needs the maximum over its chunks.
  int64_t constants = 0;  // Rotary tables; allocated by Create().
  int64_t boundary = 0;   // One activation or gradient: (rows, width).
};

// Immutable after Create(). Thread-compatible: calls enqueue on one stream,
// which must be the one that the ParameterStore is used on, and return.
class Chunk {
 public:
  static ChunkMemory Predict(const ChunkOptions& options);

  // Borrows device and parameters, which must hold the range's layers. Uses
  // `stream` to fill the constants and blocks until `deadline` for them.
  // InvalidArgument for an impossible config, range or shape.
  static absl::StatusOr<std::unique_ptr<Chunk>> Create(
      device::Device& device, device::Stream& stream,
      ParameterStore& parameters, const ChunkOptions& options,
      absl::Time deadline);

  const ChunkOptions& options() const { return options_; }
  const ChunkMemory& memory() const { return memory_; }
  bool has_embedding() const { return options_.range.embedding; }
  bool has_head() const { return options_.range.head; }

  // --- Places inside a slot that starts at `slot`.

  // The slot's first host_input_bytes() are filled by one copy from pinned
  // memory that is laid out the same way. Every chunk has the position, i64
  // (2): {step, global index of the micro-batch's first sequence}; with an
  // embedding ids, i32 (batch, seq); with a head labels, i32 (batch * seq),
  // aligned with the positions already, ignored where kIgnoredLabel.
  int64_t host_input_bytes() const { return host_inputs_.bytes(); }
  device::Tensor Position(std::byte* slot) const;
  device::Tensor Ids(std::byte* slot) const;     // Absent without embedding.
  device::Tensor Labels(std::byte* slot) const;  // Absent without head.
  // (rows, width): where the previous chunk's output is received. Absent with
  // an embedding.
  device::Tensor Input(std::byte* slot) const;
  // Shape of every boundary tensor, of kResidualType.
  device::Shape boundary_shape() const;

  // --- Work.

  struct ForwardArgs {
    std::byte* slot = nullptr;
    std::byte* workspace = nullptr;
    device::Tensor output;          // (=); absent with a head.
    device::Tensor sequence_loss;   // f64 (batch) (=); with a head only.
    device::Tensor sequence_valid;  // i64 (batch) (=); with a head only.
    Mode mode = Mode::kTrain;       // kEvaluate: any idle slot will do.
  };
  void Forward(device::Stream& stream, const ForwardArgs& args) const;

  // `output_gradient` must stay as it is until the call has run; it is not
  // needed afterwards, also not by a later BackwardWeight.
  struct BackwardArgs {
    std::byte* slot = nullptr;
    std::byte* workspace = nullptr;
    std::byte* held = nullptr;       // Split calls only.
    device::Tensor output_gradient;  // (rows, width); absent with a head.
    device::Tensor input_gradient;   // (=); absent with an embedding.
  };
  // I, then W, of each layer in reverse order.
  void Backward(device::Stream& stream, const BackwardArgs& args) const;
  // The I of every layer in reverse order. What W needs is left in slot and
  // held.
  void BackwardInput(device::Stream& stream, const BackwardArgs& args) const;
  // The W of every layer in reverse order. Needs no boundary tensors. The bits
  // are Backward's.
  void BackwardWeight(device::Stream& stream, const BackwardArgs& args) const;

 private:
  // One layer and where its things lie.
  struct Place {
    std::unique_ptr<Layer> layer;
    int64_t index = 0;       // Of the pipeline, as in ParameterStore::OfLayer.
    Field input;             // In the slot; ids for the embedding.
    int64_t stash = 0;       // In the slot; not with recompute.
    int64_t held_stash = 0;  // In `held`, with recompute.
    int64_t held_kept = 0;   // In `held`.
    Field held_gradient;     // In `held`: dy, where W reads it.
  };
  // Where B, I and W find a layer's things.
  enum class Pass { kWhole, kSplit };

  explicit Chunk(const ChunkOptions& options);
  void AddLayers();
  void LayOutSlot();
  void LayOutHeld();
  void LayOutWorkspace();
  absl::Status FillTables(device::Device& device, device::Stream& stream,
                          absl::Time deadline);

  bool recomputes() const { return options_.recompute == Recompute::kFull; }
  LayerContext Context(device::Stream& stream, const Place& place,
                       std::byte* slot, std::byte* workspace) const;
  std::byte* Stash(const Place& place, const BackwardArgs& args,
                   Pass pass) const;
  // dy of place i of n; args' for the last.
  device::Tensor OutputGradient(int i, const BackwardArgs& args,
                                Pass pass) const;
  LayerBackward BackwardOf(int i, const BackwardArgs& args, Pass pass) const;
  // Replays the layer where asked, then its I.
  void RunInput(device::Stream& stream, int i, const BackwardArgs& args,
                Pass pass) const;
  void RunWeight(device::Stream& stream, int i, const BackwardArgs& args,
                 Pass pass) const;

  const ChunkOptions options_;
  ChunkMemory memory_;
  Layout host_inputs_;             // The start of the slot.
  Field position_, ids_, labels_;  // In it.
  std::vector<Place> places_;      // In forward order.

  // In the workspace.
  int64_t scratch_ = 0;                   // Of one layer's call.
  int64_t stash_ = 0;                     // Of one layer, with recompute.
  int64_t kept_ = 0;                      // Of one layer, in B.
  std::array<Field, 2> gradients_;        // Between layers, in turn.
  Field replayed_loss_, replayed_valid_;  // Of a recomputed head.

  RopeTables tables_;
  std::unique_ptr<device::Buffer> constants_;  // What tables_ points into.
  device::Ops* ops_ = nullptr;                 // Borrowed, set by Create().
  ParameterStore* parameters_ = nullptr;       // Likewise.
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_CHUNK_H_
