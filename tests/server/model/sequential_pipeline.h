// Trains a model that is cut into chunks, one micro-batch after the other on
// one thread: chunks and stores driven as the executor drives them, without
// transport, schedule or barrier. The oracle for everything above the model.
// Memory is NaN whenever a chunk has no right to what was in it: who reads what
// was given back spoils the result.
#ifndef PENSTOCK_TESTS_SERVER_MODEL_SEQUENTIAL_PIPELINE_H_
#define PENSTOCK_TESTS_SERVER_MODEL_SEQUENTIAL_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/model/chunk.h"
#include "server/model/model_config.h"
#include "server/model/optimizer.h"
#include "server/model/parameters.h"
#include "tests/server/model/parity_case.h"

namespace penstock::testing {

// Cuts embedding, blocks and head into `count` consecutive runs as even as can
// be. REQUIRES: 1 <= count <= layers + 2.
std::vector<server::model::LayerRange> CutEvenly(int64_t layers, int count);

// One step's data: sequences of ids and labels, a whole global batch.
struct StepBatch {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<int32_t>> labels;
  int64_t step = 0;
  int64_t first_sample = 0;
};

// The case's step, from 0.
StepBatch ParityBatch(const ParityCase& parity, int64_t step);

struct StepResult {
  double loss = 0;  // Sum over valid tokens / their number.
  int64_t valid = 0;
  double grad_norm = 0;  // Of the mean loss, before clipping.
  std::vector<double> sequence_loss;
};

// Thread-compatible.
class SequentialPipeline {
 public:
  // kSplit: the W of a micro-batch is run after the I of the next one.
  enum class Backward { kWhole, kSplit };
  struct Options {
    server::model::ModelConfig model;
    std::vector<server::model::LayerRange> ranges;  // The chunks.
    // Whether each chunk is a rank of its own, or one rank has them all.
    bool rank_per_chunk = true;
    server::model::BatchShape shape;
    server::model::Recompute recompute = server::model::Recompute::kNone;
    Backward backward = Backward::kWhole;
    uint64_t seed = 1;
    server::model::OptimizerConfig optimizer;
    double clip_norm = 1;
    double learning_rate = 0;
  };
  // Borrows the device.
  static absl::StatusOr<std::unique_ptr<SequentialPipeline>> Create(
      server::device::Device& device, const Options& options);

  absl::Status Load(const server::model::ParameterStore::Source& source);

  // Forward and backward of all micro-batches, ties, norms. Gradients stay.
  absl::StatusOr<StepResult> Accumulate(const StepBatch& batch);
  // The barrier's arithmetic (docs/numerics.md), then every rank's update.
  absl::Status Apply(const StepResult& result);

  // Sum of losses and valid tokens of one micro-batch, without dropout.
  absl::StatusOr<StepResult> Evaluate(const StepBatch& batch);

  // Of all ranks; canonical order.
  absl::Status ReadWeights(const server::model::ParameterStore::Sink& sink);
  absl::Status ReadGradients(const server::model::ParameterStore::Sink& sink);
  // weights_sha256 (of summary.json), hexadecimal.
  absl::StatusOr<std::string> WeightsSha256();

  const std::vector<std::unique_ptr<server::model::ParameterStore>>& stores()
      const {
    return stores_;
  }

 private:
  struct Stage {
    std::unique_ptr<server::model::Chunk> chunk;
    server::model::ParameterStore* store = nullptr;
    // Two of each, taken in turn: one micro-batch is not tied to one place,
    // and a split backward's W comes after the next micro-batch's I.
    std::unique_ptr<server::device::Buffer> slots[2], held[2];
    std::unique_ptr<server::device::Buffer> host, workspace;
    std::unique_ptr<server::device::Buffer> output, input_gradient;
  };

  SequentialPipeline(server::device::Device& device, const Options& options)
      : device_(device), options_(options) {}
  absl::Status Build();
  absl::Status Fill(Stage& stage, std::byte* slot, const StepBatch& batch,
                    int64_t first);
  absl::Status Forward(const StepBatch& batch, int64_t first,
                       server::model::Mode mode, StepResult& result);
  // B or I of every stage, for the micro-batch of these sequences.
  void BackwardOne(int64_t first);
  // The W of every stage.
  void WeightsOne(int64_t first);
  absl::Status CombineTied();
  int Place(int64_t first) const {
    return static_cast<int>(first / options_.shape.batch % 2);
  }
  // Fills memory that nobody may read before it is written again with NaN.
  void Poison(server::device::Buffer& buffer);

  server::device::Device& device_;
  const Options options_;
  std::unique_ptr<server::device::Stream> stream_;
  std::vector<std::unique_ptr<server::model::ParameterStore>> stores_;
  std::vector<Stage> stages_;
  std::unique_ptr<server::device::Buffer> losses_, host_losses_;
  int64_t adam_t_ = 0;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_MODEL_SEQUENTIAL_PIPELINE_H_
