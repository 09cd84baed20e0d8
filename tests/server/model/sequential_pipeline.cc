#include "tests/server/model/sequential_pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/digest/sha256.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::testing {

using server::device::Buffer;
using server::device::DType;
using server::device::MemoryUse;
using server::device::Shape;
using server::device::Tensor;
using server::model::Chunk;
using server::model::ChunkMemory;
using server::model::LayerRange;
using server::model::Mode;
using server::model::ParameterStore;
using server::model::TiedRole;

namespace {

const absl::Time kNever = absl::InfiniteFuture();

}  // namespace

std::vector<LayerRange> CutEvenly(int64_t layers, int count) {
  CHECK(count >= 1 && count <= layers + 2);
  std::vector<LayerRange> ranges;
  const int64_t all = layers + 2;
  for (int i = 0; i < count; ++i) {
    const int64_t first = all * i / count, end = all * (i + 1) / count;
    LayerRange range{.embedding = first == 0, .head = end == all};
    range.first_block = std::max<int64_t>(first - 1, 0);
    range.end_block = std::min(end - 1, layers);
    ranges.push_back(range);
  }
  return ranges;
}

StepBatch ParityBatch(const ParityCase& parity, int64_t step) {
  const int64_t count = parity.sequences_per_step;
  StepBatch batch{.step = step, .first_sample = step * count};
  for (int64_t i = 0; i < count; ++i) {
    batch.ids.push_back(parity.ids[step * count + i]);
    batch.labels.push_back(parity.labels[step * count + i]);
  }
  return batch;
}

absl::StatusOr<std::unique_ptr<SequentialPipeline>> SequentialPipeline::Create(
    server::device::Device& device, const Options& options) {
  auto pipeline = std::unique_ptr<SequentialPipeline>(
      new SequentialPipeline(device, options));
  RETURN_IF_ERROR(pipeline->Build());
  return pipeline;
}

absl::Status SequentialPipeline::Build() {
  ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  std::vector<std::vector<LayerRange>> ranks;
  if (options_.rank_per_chunk) {
    for (const LayerRange& range : options_.ranges) ranks.push_back({range});
  } else {
    ranks.push_back(options_.ranges);
  }
  for (const std::vector<LayerRange>& ranges : ranks) {
    ASSIGN_OR_RETURN(
        stores_.emplace_back(),
        ParameterStore::Create(device_, {.model = options_.model,
                                         .ranges = ranges,
                                         .optimizer = options_.optimizer}));
    for (const LayerRange& range : ranges) {
      Stage& stage = stages_.emplace_back();
      stage.store = stores_.back().get();
      ASSIGN_OR_RETURN(stage.chunk,
                       Chunk::Create(device_, *stream_, *stage.store,
                                     {.model = options_.model,
                                      .range = range,
                                      .shape = options_.shape,
                                      .recompute = options_.recompute,
                                      .seed = options_.seed},
                                     kNever));
      const ChunkMemory& memory = stage.chunk->memory();
      const auto allocate =
          [&](int64_t bytes, std::unique_ptr<Buffer>& buffer) -> absl::Status {
        ASSIGN_OR_RETURN(buffer,
                         device_.Allocate(bytes, MemoryUse::kWorkspace));
        return absl::OkStatus();
      };
      for (auto& slot : stage.slots) {
        RETURN_IF_ERROR(allocate(memory.slot, slot));
      }
      for (auto& held : stage.held) {
        RETURN_IF_ERROR(allocate(memory.held, held));
      }
      RETURN_IF_ERROR(allocate(memory.workspace, stage.workspace));
      RETURN_IF_ERROR(allocate(memory.boundary, stage.output));
      RETURN_IF_ERROR(allocate(memory.boundary, stage.input_gradient));
      ASSIGN_OR_RETURN(stage.host,
                       device_.Allocate(stage.chunk->host_input_bytes(),
                                        MemoryUse::kPinnedHost));
    }
  }
  const int64_t bytes = options_.shape.batch * 16;
  ASSIGN_OR_RETURN(losses_, device_.Allocate(bytes, MemoryUse::kWorkspace));
  ASSIGN_OR_RETURN(host_losses_,
                   device_.Allocate(bytes, MemoryUse::kPinnedHost));
  return absl::OkStatus();
}

absl::Status SequentialPipeline::Load(const ParameterStore::Source& source) {
  for (auto& store : stores_) {
    RETURN_IF_ERROR(store->Load(*stream_, source, 0, kNever));
  }
  return absl::OkStatus();
}

void SequentialPipeline::Poison(Buffer& buffer) {
  const int64_t floats = buffer.bytes() / static_cast<int64_t>(sizeof(float));
  if (floats == 0) return;
  device_.ops().Fill(
      *stream_,
      {.y = Tensor(buffer.data(), DType::kF32, Shape({floats})), .value = NAN});
}

absl::Status SequentialPipeline::Fill(Stage& stage, std::byte* slot,
                                      const StepBatch& batch, int64_t first) {
  std::byte* const host = stage.host->data();
  int64_t* const position = stage.chunk->Position(host).i64();
  position[0] = batch.step;
  position[1] = batch.first_sample + first;
  const int64_t seq = options_.shape.seq;
  for (int64_t b = 0; b < options_.shape.batch; ++b) {
    if (const Tensor ids = stage.chunk->Ids(host); ids.present()) {
      std::copy_n(batch.ids[first + b].begin(), seq, ids.i32() + b * seq);
    }
    if (const Tensor labels = stage.chunk->Labels(host); labels.present()) {
      std::copy_n(batch.labels[first + b].begin(), seq, labels.i32() + b * seq);
    }
  }
  device_.CopyToDevice(*stream_, slot, host, stage.chunk->host_input_bytes());
  return stream_->Synchronize(kNever);
}

absl::Status SequentialPipeline::Forward(const StepBatch& batch, int64_t first,
                                         Mode mode, StepResult& result) {
  const int64_t count = options_.shape.batch;
  const Tensor loss(losses_->data(), DType::kF64, Shape({count}));
  const Tensor valid(losses_->data() + 8 * count, DType::kI64, Shape({count}));
  for (size_t s = 0; s < stages_.size(); ++s) {
    Stage& stage = stages_[s];
    Buffer& buffer = *stage.slots[Place(first)];
    Poison(buffer);
    std::byte* const slot = buffer.data();
    RETURN_IF_ERROR(Fill(stage, slot, batch, first));
    const Tensor boundary(stage.output->data(), DType::kF32,
                          stage.chunk->boundary_shape());
    if (s > 0) {
      const Tensor sent(stages_[s - 1].output->data(), DType::kF32,
                        stage.chunk->boundary_shape());
      device_.ops().Copy(*stream_, {.x = sent, .y = stage.chunk->Input(slot)});
    }
    const bool head = stage.chunk->has_head();
    stage.chunk->Forward(*stream_, {.slot = slot,
                                    .workspace = stage.workspace->data(),
                                    .output = head ? Tensor() : boundary,
                                    .sequence_loss = head ? loss : Tensor(),
                                    .sequence_valid = head ? valid : Tensor(),
                                    .mode = mode});
    Poison(*stage.workspace);
  }
  device_.CopyToHost(*stream_, host_losses_->data(), losses_->data(),
                     16 * count);
  RETURN_IF_ERROR(stream_->Synchronize(kNever));
  const auto* losses = reinterpret_cast<const double*>(host_losses_->data());
  const auto* valids =
      reinterpret_cast<const int64_t*>(host_losses_->data() + 8 * count);
  double sum = 0;
  for (int64_t b = 0; b < count; ++b) {
    result.sequence_loss.push_back(losses[b]);
    sum += losses[b];
    result.valid += valids[b];
  }
  result.loss += sum;
  return absl::OkStatus();
}

void SequentialPipeline::BackwardOne(int64_t first) {
  for (int s = static_cast<int>(stages_.size()) - 1; s >= 0; --s) {
    Stage& stage = stages_[s];
    Chunk::BackwardArgs args{.slot = stage.slots[Place(first)]->data(),
                             .workspace = stage.workspace->data()};
    const auto boundary = [&](const Stage& of) {
      return Tensor(of.input_gradient->data(), DType::kF32,
                    stage.chunk->boundary_shape());
    };
    if (!stage.chunk->has_head())
      args.output_gradient = boundary(stages_[s + 1]);
    if (!stage.chunk->has_embedding()) args.input_gradient = boundary(stage);
    if (options_.backward == Backward::kWhole) {
      stage.chunk->Backward(*stream_, args);
    } else {
      Poison(*stage.held[Place(first)]);
      args.held = stage.held[Place(first)]->data();
      stage.chunk->BackwardInput(*stream_, args);
    }
    Poison(*stage.workspace);
    // W may not read what the transport has taken back.
    if (!stage.chunk->has_head()) Poison(*stages_[s + 1].input_gradient);
  }
}

void SequentialPipeline::WeightsOne(int64_t first) {
  for (Stage& stage : stages_) {
    stage.chunk->BackwardWeight(*stream_,
                                {.slot = stage.slots[Place(first)]->data(),
                                 .workspace = stage.workspace->data(),
                                 .held = stage.held[Place(first)]->data()});
    Poison(*stage.workspace);
  }
}

absl::Status SequentialPipeline::CombineTied() {
  ParameterStore *embedding = nullptr, *head = nullptr;
  for (auto& store : stores_) {
    if (store->tied_role() == TiedRole::kWhole) store->CombineTied(*stream_);
    if (store->tied_role() == TiedRole::kEmbedding) embedding = store.get();
    if (store->tied_role() == TiedRole::kHead) head = store.get();
  }
  if (embedding == nullptr) return absl::OkStatus();
  server::device::Ops& ops = device_.ops();
  ops.Copy(*stream_, {.x = head->tied_head_gradient(),
                      .y = embedding->tied_head_gradient()});
  embedding->CombineTied(*stream_);
  ops.Copy(*stream_,
           {.x = embedding->tied_sum(), .y = head->tied_head_gradient()});
  return absl::OkStatus();
}

absl::StatusOr<StepResult> SequentialPipeline::Accumulate(
    const StepBatch& batch) {
  for (auto& store : stores_) store->BeginStep();
  StepResult result;
  const int64_t count = static_cast<int64_t>(batch.ids.size());
  CHECK_EQ(count % options_.shape.batch, 0);
  const bool split = options_.backward == Backward::kSplit;
  const int64_t each = options_.shape.batch;
  for (int64_t first = 0; first < count; first += each) {
    RETURN_IF_ERROR(Forward(batch, first, Mode::kTrain, result));
    BackwardOne(first);
    if (split && first > 0) WeightsOne(first - each);
  }
  if (split) WeightsOne(count - each);
  RETURN_IF_ERROR(CombineTied());
  for (auto& store : stores_) store->EnqueueSumSquares(*stream_);
  RETURN_IF_ERROR(stream_->Synchronize(kNever));
  // Ranks ascend, and so do the parameters: canonical order. With one rank for
  // several chunks its own order is canonical.
  double sum = 0;
  for (auto& store : stores_) {
    for (const double of_tensor : store->sum_squares()) sum += of_tensor;
  }
  result.grad_norm = std::sqrt(sum) / result.valid;
  result.loss /= result.valid;
  return result;
}

absl::Status SequentialPipeline::Apply(const StepResult& result) {
  ++adam_t_;
  const double clip =
      std::min(1.0, options_.clip_norm / (result.grad_norm + 1e-6));
  const auto correction = [&](float beta) {
    return static_cast<float>(
        1 - std::pow(static_cast<double>(beta), static_cast<double>(adam_t_)));
  };
  for (auto& store : stores_) {
    store->Apply(*stream_,
                 {.grad_scale = static_cast<float>(clip / result.valid),
                  .learning_rate = static_cast<float>(options_.learning_rate),
                  .bias_correction1 = correction(options_.optimizer.beta1),
                  .bias_correction2 = correction(options_.optimizer.beta2)});
  }
  return stream_->Synchronize(kNever);
}

absl::StatusOr<StepResult> SequentialPipeline::Evaluate(
    const StepBatch& batch) {
  StepResult result;
  const int64_t count = static_cast<int64_t>(batch.ids.size());
  for (int64_t first = 0; first < count; first += options_.shape.batch) {
    RETURN_IF_ERROR(Forward(batch, first, Mode::kEvaluate, result));
  }
  result.loss /= result.valid;
  return result;
}

absl::Status SequentialPipeline::ReadWeights(const ParameterStore::Sink& sink) {
  for (auto& store : stores_) {
    RETURN_IF_ERROR(store->ReadWeights(*stream_, sink, kNever));
  }
  return absl::OkStatus();
}

absl::Status SequentialPipeline::ReadGradients(
    const ParameterStore::Sink& sink) {
  for (auto& store : stores_) {
    RETURN_IF_ERROR(store->ReadGradients(*stream_, sink, kNever));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SequentialPipeline::WeightsSha256() {
  std::map<std::string, common::digest::Sha256Digest> digests;
  for (auto& store : stores_) {
    ASSIGN_OR_RETURN(const auto part, store->Digests(*stream_, kNever));
    for (const auto& tensor : part) digests[tensor.name] = tensor.sha256;
  }
  common::digest::Sha256 sha;
  for (const auto& [name, digest] : digests) {
    sha.Update(name);
    sha.Update(absl::string_view("\0", 1));
    sha.Update(absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(digest.data()), digest.size()));
  }
  return common::digest::ToHex(sha.Finish());
}

}  // namespace penstock::testing
