#include "server/model/chunk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/model/rope.h"

namespace penstock::server::model {

using device::DType;
using device::MemoryUse;
using device::Shape;
using device::Tensor;

namespace {

absl::Status ValidateOptions(const ChunkOptions& options) {
  RETURN_IF_ERROR(Validate(options.model));
  const LayerRange& range = options.range;
  const int64_t layers = options.model.layers;
  const auto invalid = [&](absl::string_view rule) {
    return absl::InvalidArgumentError(absl::StrCat(
        "layers of a chunk: ", range.embedding ? "embedding, " : "", "blocks [",
        range.first_block, ", ", range.end_block, ")",
        range.head ? ", head" : "", " of ", layers, ": ", rule));
  };
  if (range.first_block < 0 || range.first_block > range.end_block ||
      range.end_block > layers) {
    return invalid("no such blocks");
  }
  if (range.embedding && range.first_block != 0) {
    return invalid("the embedding is followed by block 0");
  }
  if (range.head && range.end_block != layers) {
    return invalid("the head follows the last block");
  }
  if (!range.embedding && !range.head && range.first_block == range.end_block) {
    return invalid("it is empty");
  }
  if (options.shape.batch < 1 || options.shape.seq < 1 ||
      options.shape.seq > options.model.context) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro-batch of ", options.shape.batch, " sequences of ",
                     options.shape.seq,
                     ": needs at least one of each, and at most the "
                     "model's context (",
                     options.model.context, ")"));
  }
  return absl::OkStatus();
}

int64_t TableBytes(const ChunkOptions& options) {
  const bool used = options.model.family == Family::kLlama &&
                    options.range.first_block < options.range.end_block;
  if (!used) return 0;
  return Aligned(options.shape.seq * (options.model.head_dim / 2) *
                 static_cast<int64_t>(sizeof(float)));
}

}  // namespace

ChunkMemory Chunk::Predict(const ChunkOptions& options) {
  return Chunk(options).memory_;
}

absl::StatusOr<std::unique_ptr<Chunk>> Chunk::Create(
    device::Device& device, device::Stream& stream, ParameterStore& parameters,
    const ChunkOptions& options, absl::Time deadline) {
  RETURN_IF_ERROR(ValidateOptions(options));
  auto chunk = std::unique_ptr<Chunk>(new Chunk(options));
  chunk->ops_ = &device.ops();
  chunk->parameters_ = &parameters;
  RETURN_IF_ERROR(chunk->FillTables(device, stream, deadline));
  return chunk;
}

Chunk::Chunk(const ChunkOptions& options) : options_(options) {
  AddLayers();
  LayOutSlot();
  LayOutHeld();
  LayOutWorkspace();
  memory_.constants = 2 * TableBytes(options_);
  memory_.boundary = Aligned(boundary_shape().elements() *
                             device::ElementBytes(kResidualType));
}

void Chunk::AddLayers() {
  const ModelConfig& model = options_.model;
  const LayerRange& range = options_.range;
  const auto add = [this](int64_t index, std::unique_ptr<Layer> layer) {
    places_.push_back({.layer = std::move(layer), .index = index});
  };
  if (range.embedding) add(0, MakeEmbedding(model, options_.shape));
  for (int64_t b = range.first_block; b < range.end_block; ++b) {
    add(1 + b, MakeBlock(model, b, options_.shape, &tables_));
  }
  if (range.head) add(1 + model.layers, MakeHead(model, options_.shape));
}

void Chunk::LayOutSlot() {
  const BatchShape& shape = options_.shape;
  position_ = host_inputs_.Add("position", DType::kI64, Shape({2}));
  if (has_embedding()) {
    ids_ =
        host_inputs_.Add("ids", DType::kI32, Shape({shape.batch, shape.seq}));
  }
  if (has_head()) {
    labels_ = host_inputs_.Add("labels", DType::kI32, Shape({shape.rows()}));
  }
  Layout slot;
  slot.AddBlock(host_inputs_.bytes());
  for (Place& place : places_) {
    const bool embedding = &place == &places_.front() && has_embedding();
    place.input =
        embedding ? ids_ : slot.Add("input", kResidualType, boundary_shape());
    if (!recomputes()) {
      place.stash = slot.AddBlock(place.layer->stash_bytes());
    }
  }
  memory_.slot = slot.bytes();
}

void Chunk::LayOutHeld() {
  Layout held;
  for (Place& place : places_) {
    if (place.layer->weight_needs_output_gradient()) {
      place.held_gradient =
          held.Add("output gradient", kResidualType, boundary_shape());
    }
    place.held_kept = held.AddBlock(place.layer->kept_bytes());
    if (recomputes()) {
      place.held_stash = held.AddBlock(place.layer->stash_bytes());
    }
  }
  memory_.held = held.bytes();
}

void Chunk::LayOutWorkspace() {
  int64_t scratch = 0, kept = 0, stash = 0;
  for (const Place& place : places_) {
    scratch = std::max(scratch, place.layer->scratch_bytes());
    kept = std::max(kept, place.layer->kept_bytes());
    stash = std::max(stash, place.layer->stash_bytes());
  }
  Layout workspace;
  scratch_ = workspace.AddBlock(scratch);
  kept_ = workspace.AddBlock(kept);
  const size_t between = places_.size() - 1;
  for (size_t i = 0; i < std::min(between, gradients_.size()); ++i) {
    gradients_[i] = workspace.Add("gradient", kResidualType, boundary_shape());
  }
  if (recomputes()) {
    stash_ = workspace.AddBlock(stash);
    if (has_head()) {
      const Shape batch({options_.shape.batch});
      replayed_loss_ = workspace.Add("replayed loss", DType::kF64, batch);
      replayed_valid_ = workspace.Add("replayed valid", DType::kI64, batch);
    }
  }
  memory_.workspace = workspace.bytes();
}

absl::Status Chunk::FillTables(device::Device& device, device::Stream& stream,
                               absl::Time deadline) {
  const int64_t bytes = TableBytes(options_);
  if (bytes == 0) return absl::OkStatus();
  const int64_t seq = options_.shape.seq, pairs = options_.model.head_dim / 2;
  ASSIGN_OR_RETURN(constants_,
                   device.Allocate(2 * bytes, MemoryUse::kWorkspace));
  ASSIGN_OR_RETURN(const std::unique_ptr<device::Buffer> host,
                   device.Allocate(2 * bytes, MemoryUse::kPinnedHost));
  const auto values = [&](std::byte* start) {
    return absl::MakeSpan(reinterpret_cast<float*>(start), seq * pairs);
  };
  std::fill_n(host->data(), 2 * bytes, std::byte{0});
  FillRopeTables(options_.model, seq, values(host->data()),
                 values(host->data() + bytes));
  device.CopyToDevice(stream, constants_->data(), host->data(), 2 * bytes);
  tables_.cosine = Tensor(constants_->data(), DType::kF32, Shape({seq, pairs}));
  tables_.sine =
      Tensor(constants_->data() + bytes, DType::kF32, Shape({seq, pairs}));
  return stream.Synchronize(deadline);
}

Shape Chunk::boundary_shape() const {
  return Shape({options_.shape.rows(), options_.model.width});
}

Tensor Chunk::Position(std::byte* slot) const { return position_.At(slot); }

Tensor Chunk::Ids(std::byte* slot) const {
  return has_embedding() ? ids_.At(slot) : Tensor();
}

Tensor Chunk::Labels(std::byte* slot) const {
  return has_head() ? labels_.At(slot) : Tensor();
}

Tensor Chunk::Input(std::byte* slot) const {
  return has_embedding() ? Tensor() : places_.front().input.At(slot);
}

LayerContext Chunk::Context(device::Stream& stream, const Place& place,
                            std::byte* slot, std::byte* workspace) const {
  return {.ops = *ops_,
          .stream = stream,
          .parameters = parameters_->OfLayer(place.index),
          .position = position_.At(slot),
          .scratch = workspace + scratch_,
          .seed = options_.seed};
}

void Chunk::Forward(device::Stream& stream, const ForwardArgs& args) const {
  const int count = static_cast<int>(places_.size());
  for (int i = 0; i < count; ++i) {
    const Place& place = places_[i];
    LayerForward forward{.x = place.input.At(args.slot), .mode = args.mode};
    forward.stash =
        recomputes() ? args.workspace + stash_ : args.slot + place.stash;
    if (i + 1 < count) {
      forward.y = places_[i + 1].input.At(args.slot);
    } else if (!has_head()) {
      forward.y = args.output;
    } else {
      forward.labels = Labels(args.slot);
      forward.sequence_loss = args.sequence_loss;
      forward.sequence_valid = args.sequence_valid;
    }
    place.layer->Forward(Context(stream, place, args.slot, args.workspace),
                         forward);
  }
}

std::byte* Chunk::Stash(const Place& place, const BackwardArgs& args,
                        Pass pass) const {
  if (!recomputes()) return args.slot + place.stash;
  return pass == Pass::kWhole ? args.workspace + stash_
                              : args.held + place.held_stash;
}

Tensor Chunk::OutputGradient(int i, const BackwardArgs& args, Pass pass) const {
  const bool last = i + 1 == static_cast<int>(places_.size());
  if (last && has_head()) return Tensor();
  if (pass == Pass::kSplit &&
      places_[i].layer->weight_needs_output_gradient()) {
    return places_[i].held_gradient.At(args.held);
  }
  if (last) return args.output_gradient;
  return gradients_[i % 2].At(args.workspace);
}

LayerBackward Chunk::BackwardOf(int i, const BackwardArgs& args,
                                Pass pass) const {
  const Place& place = places_[i];
  const bool last = i + 1 == static_cast<int>(places_.size());
  return {.x = place.input.At(args.slot),
          .labels = last ? Labels(args.slot) : Tensor(),
          .dy = OutputGradient(i, args, pass),
          .stash = Stash(place, args, pass),
          .kept = pass == Pass::kWhole ? args.workspace + kept_
                                       : args.held + place.held_kept};
}

void Chunk::RunInput(device::Stream& stream, int i, const BackwardArgs& args,
                     Pass pass) const {
  const Place& place = places_[i];
  const LayerContext context =
      Context(stream, place, args.slot, args.workspace);
  LayerBackward backward = BackwardOf(i, args, pass);
  if (recomputes()) {
    const bool head = backward.labels.present();
    place.layer->Forward(
        context,
        {.x = backward.x,
         .stash = backward.stash,
         .labels = backward.labels,
         .sequence_loss = head ? replayed_loss_.At(args.workspace) : Tensor(),
         .sequence_valid =
             head ? replayed_valid_.At(args.workspace) : Tensor()});
  }
  if (i > 0) {
    backward.dx = OutputGradient(i - 1, args, pass);
  } else if (!has_embedding()) {
    backward.dx = args.input_gradient;
  }
  place.layer->BackwardInput(context, backward);
}

void Chunk::RunWeight(device::Stream& stream, int i, const BackwardArgs& args,
                      Pass pass) const {
  const Place& place = places_[i];
  place.layer->BackwardWeight(Context(stream, place, args.slot, args.workspace),
                              BackwardOf(i, args, pass));
}

void Chunk::Backward(device::Stream& stream, const BackwardArgs& args) const {
  for (int i = static_cast<int>(places_.size()) - 1; i >= 0; --i) {
    RunInput(stream, i, args, Pass::kWhole);
    RunWeight(stream, i, args, Pass::kWhole);
  }
}

void Chunk::BackwardInput(device::Stream& stream,
                          const BackwardArgs& args) const {
  const int count = static_cast<int>(places_.size());
  if (!has_head() && places_.back().layer->weight_needs_output_gradient()) {
    // The received gradient's place is given back after I.
    ops_->Copy(stream, {.x = args.output_gradient,
                        .y = places_.back().held_gradient.At(args.held)});
  }
  for (int i = count - 1; i >= 0; --i) {
    RunInput(stream, i, args, Pass::kSplit);
  }
}

void Chunk::BackwardWeight(device::Stream& stream,
                           const BackwardArgs& args) const {
  for (int i = static_cast<int>(places_.size()) - 1; i >= 0; --i) {
    RunWeight(stream, i, args, Pass::kSplit);
  }
}

}  // namespace penstock::server::model
