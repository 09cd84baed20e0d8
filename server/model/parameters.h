// The parameters of one rank: weights and optimizer state in two versions,
// gradients, packed weights.
//
// V[n] is the weights and the optimizer state after step n. The optimizer reads
// V[n] and writes V[n + 1] into the other buffer, so that a step can be taken
// back. A step is, for the executor:
//
//   BeginStep()                          gradients start afresh
//   chunks' backward calls               first contribution stores, later add
//   CombineTied()                        where the token embedding lives, tied
//   EnqueueSumSquares()                  then sum_squares() for the StepReport
//   Apply() or Skip()                    V[n] -> V[n + 1], repacks the weights
//   Completed()                          V[n + 1] is whole, once the stream has
//                                        passed that
//
// Tied embedding (docs/numerics.md). TiedRole says what this rank does:
//   kWhole      both uses here: one weight, two gradients, CombineTied() adds.
//   kEmbedding  owner; the head's gradient is received into
//               tied_head_gradient(), CombineTied() adds it to tied_sum(),
//               which is then sent to the head's rank.
//   kHead       holds a copy; after its last W it sends tied_head_gradient(),
//               then receives the sum into the same tensor (once the send is
//               complete), and applies the same update. Owns nothing of it.
// The sum is embedding + head in that order in every role, so the bits agree.
//
// Thread-compatible: confined to the engine thread. Calls that take a Stream
// only enqueue unless they say that they block.
#ifndef PENSTOCK_SERVER_MODEL_PARAMETERS_H_
#define PENSTOCK_SERVER_MODEL_PARAMETERS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "server/device/device.h"
#include "server/device/ops.h"
#include "server/model/layout.h"
#include "server/model/model_config.h"
#include "server/model/optimizer.h"
#include "server/model/parameter_plan.h"
#include "server/model/parameter_spec.h"

namespace penstock::server::model {

class ParameterStore;

// What one layer sees of the store: its groups by the layer's own numbering.
// Borrowed from the store; immutable; passed by value.
class LayerParameters {
 public:
  LayerParameters() = default;
  LayerParameters(ParameterStore* store, absl::Span<const int> groups)
      : store_(store), groups_(groups) {}

  // The current version's values.
  device::Tensor Value(int group) const;
  // The same as an operand of products. REQUIRES: a product group.
  device::Weight Weight(int group) const;
  device::Tensor Gradient(int group) const;
  // kStore for the first contribution of a step, kAdd from then on: call it
  // exactly once per enqueued contribution.
  device::Accumulate Contribute(int group) const;
  // Groups [first, end), renumbered from 0.
  LayerParameters From(int first) const;

 private:
  ParameterStore* store_ = nullptr;
  absl::Span<const int> groups_;
};

// Thread-compatible: the engine thread's while an executor lives.
class ParameterStore {
 public:
  struct Options {
    ModelConfig model;
    std::vector<LayerRange> ranges;  // Of the rank's chunks, ascending.
    OptimizerConfig optimizer;
  };

  // Allocates everything; contents are undefined until Load().
  // ResourceExhausted when the device has not that much memory.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Create(
      device::Device& device, const Options& options);

  // What Create() would allocate, to the byte. `ops` only for packed sizes.
  static ParameterMemory Predict(const device::Ops& ops,
                                 const Options& options);

  ~ParameterStore();

  // --- Setting and reading weights; all of these block until `deadline`.

  // Fills `values` (f32, row-major, spec's shape) of one parameter; errors are
  // passed on. Init (init.h) and checkpoint readers have this form.
  using Source = std::function<absl::Status(const ParameterSpec& spec,
                                            absl::Span<float> values)>;
  // Asks `source` for every held parameter in canonical order, zeroes the
  // optimizer state, packs, and makes the current version V[step].
  absl::Status Load(device::Stream& stream, const Source& source, int64_t step,
                    absl::Time deadline);

  // Hands every owned parameter's current f32 values to `sink`, in canonical
  // order; stops at its first error. The span is valid during the call only.
  using Sink = std::function<absl::Status(const ParameterSpec& spec,
                                          absl::Span<const float> values)>;
  absl::Status ReadWeights(device::Stream& stream, const Sink& sink,
                           absl::Time deadline) const;
  // As ReadWeights, of the gradients of the step under way. For tests and
  // diagnosis. After CombineTied() in roles kWhole and kEmbedding.
  absl::Status ReadGradients(device::Stream& stream, const Sink& sink,
                             absl::Time deadline) const;

  // Name and SHA-256 of the little-endian f32 values of each owned parameter,
  // in canonical order: what weights_sha256 is made of. OutOfRange, reason
  // NONFINITE, naming the first one that holds NaN or infinity: no model.
  struct TensorDigest {
    std::string name;
    int64_t index = 0;  // Canonical.
    common::digest::Sha256Digest sha256{};
  };
  // `stopped`, where given, is asked between tensors; its error is returned.
  absl::StatusOr<std::vector<TensorDigest>> Digests(
      device::Stream& stream, absl::Time deadline,
      const std::function<absl::Status()>& stopped = {}) const;

  // --- A step; see the top of the file.

  // Forgets all gradients, also those of an aborted step.
  void BeginStep();

  TiedRole tied_role() const { return plan_.tied_role; }
  // (vocab, width). REQUIRES: a role that has it (see the top).
  device::Tensor tied_head_gradient() const;
  device::Tensor tied_sum() const;
  // tied_sum() += tied_head_gradient(). REQUIRES: kWhole or kEmbedding, both
  // gradients final in the stream's order, once a step.
  void CombineTied(device::Stream& stream);

  // The parameters that this rank reports and updates, canonical order.
  const std::vector<ParameterSpec>& owned() const { return owned_; }
  // Enqueues the sum of squares of each owned parameter's gradient, and its
  // copy to the host. REQUIRES: CombineTied() before, where the role asks.
  void EnqueueSumSquares(device::Stream& stream);
  // Parallel to owned(); valid once the stream has passed EnqueueSumSquares(),
  // until the next one.
  absl::Span<const double> sum_squares() const;

  // n of V[n], the current version, which the stream may still be making.
  int64_t step() const { return step_number_; }
  // Enqueues V[n] -> V[n + 1], switches to it, and repacks. REQUIRES: every
  // gradient has at least one contribution; the stream has passed the Apply()
  // before the last one (its scalars are reused).
  void Apply(device::Stream& stream, const StepScalars& scalars);
  // As Apply() with V[n + 1] = V[n]: a step that updates nothing.
  void Skip(device::Stream& stream);
  // REQUIRES: the stream has passed the newest Apply() or Skip(), unfailed.
  void Completed() { versions_[current_].step = step_number_; }
  // Makes V[step] current again, one of the two newest, and repacks: what was
  // under way when an epoch ended may have packed the half of another one.
  // FailedPrecondition when it is neither, or never was completed.
  absl::Status ReturnTo(device::Stream& stream, int64_t step);

  // --- For chunks.

  // The layer's parameters: layer 0 is the embedding, 1 + b block b, and
  // 1 + layers the head. REQUIRES: within the ranges. Valid as long as the
  // store.
  LayerParameters OfLayer(int64_t layer);

  const ParameterMemory& memory() const { return plan_.memory; }

 private:
  friend class LayerParameters;

  struct Version {
    int64_t step = -1;  // n of V[n]; -1: nothing whole in it.
    std::unique_ptr<device::Buffer> weights;
    std::array<std::unique_ptr<device::Buffer>, 2> state;
  };
  enum class What { kWeights, kGradients };

  ParameterStore(device::Device& device, const Options& options,
                 ParameterPlan plan);

  absl::Status Allocate();
  TensorVersion VersionOf(const HeldParameter& held,
                          const Version& version) const;
  device::Tensor GradientOf(const HeldParameter& held) const;
  // Of a group, by index into plan_.groups.
  device::Tensor ValueOf(int group) const;
  device::Tensor GroupGradientOf(int group) const;
  device::Weight WeightOf(int group) const;
  device::Accumulate Contribute(int group);
  // Makes `version` the current one.
  void MakeCurrent(device::Stream& stream, int version);
  absl::Status ReadOwned(device::Stream& stream, What what, const Sink& sink,
                         absl::Time deadline) const;

  // Constant after Create().
  device::Device& device_;
  const OptimizerConfig optimizer_;
  const ParameterPlan plan_;
  std::vector<ParameterSpec> owned_;
  std::unique_ptr<device::Buffer> gradients_;
  std::unique_ptr<device::Buffer> packed_;
  std::unique_ptr<device::Buffer> step_;  // Scalars, then sums of squares.
  std::unique_ptr<device::Buffer> pinned_scalars_;  // Two sets, by version.
  std::unique_ptr<device::Buffer> pinned_sums_;
  std::unique_ptr<device::Buffer> staging_;  // Of the largest held tensor.

  std::array<Version, 2> versions_;
  int current_ = 0;
  int64_t step_number_ = -1;  // Of the current one, whole or not.
  // Of the step under way.
  std::vector<bool> contributed_;  // By group.
  bool combined_ = false;
};

}  // namespace penstock::server::model

#endif  // PENSTOCK_SERVER_MODEL_PARAMETERS_H_
