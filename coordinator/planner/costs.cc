#include "coordinator/planner/costs.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "coordinator/planner/refusal.h"

namespace penstock::coordinator::planner {
namespace {

// A product (rows, in) x (in, out): two operations an element, and as many for
// each of its two gradients.
LayerCost Product(double rows, double in, double out) {
  const double flops = 2 * rows * in * out;
  return {flops, flops, flops};
}

// Work of `flops` operations a value that has no weights.
LayerCost Elementwise(double values, double flops) {
  return {values * flops, values * flops, 0};
}

LayerCost& operator+=(LayerCost& a, const LayerCost& b) {
  a.forward += b.forward;
  a.backward_input += b.backward_input;
  a.backward_weight += b.backward_weight;
  return a;
}

LayerCost operator*(double n, const LayerCost& a) {
  return {n * a.forward, n * a.backward_input, n * a.backward_weight};
}

// Causal: half of the (seq, seq) scores. Forward has two products of that
// size (scores, values), backward five.
LayerCost Attention(const ModelShape& model, const BatchShape& batch) {
  const double pairs = static_cast<double>(batch.rows()) *
                       static_cast<double>(batch.sequence_length + 1) / 2 *
                       static_cast<double>(model.heads);
  const double product = 2 * pairs * static_cast<double>(model.head_dim);
  return {2 * product + 5 * pairs, 5 * product + 5 * pairs, 0};
}

constexpr double kNormFlops = 8;  // A value.
constexpr double kActivationFlops = 10;

constexpr int64_t kFloatBytes = 4;

}  // namespace

ModelCosts AnalyticCosts(const ModelShape& model, const BatchShape& batch,
                         Recompute recompute) {
  const auto rows = static_cast<double>(batch.rows());
  const auto width = static_cast<double>(model.width);
  const auto ffn = static_cast<double>(model.ffn_width);
  const auto queries = static_cast<double>(model.heads * model.head_dim);
  const auto keys = static_cast<double>(model.kv_heads * model.head_dim);
  const bool llama = model.family == Family::kLlama;

  ModelCosts costs;
  costs.embedding = {2 * rows * width, 0, 2 * rows * width};

  costs.block += Product(rows, width, queries + 2 * keys);
  costs.block += Attention(model, batch);
  costs.block += Product(rows, queries, width);
  costs.block += (llama ? 3 : 2) * Product(rows, width, ffn);
  costs.block += Elementwise(rows * ffn, kActivationFlops);
  costs.block += 2 * Elementwise(rows * width, kNormFlops);

  costs.head += Product(rows, width, static_cast<double>(model.vocab));
  costs.head += Elementwise(rows * static_cast<double>(model.vocab), 5);
  costs.head += Elementwise(rows * width, kNormFlops);

  if (recompute == Recompute::kFull) {
    costs.block.backward_input += costs.block.forward;
    costs.head.backward_input += costs.head.forward;
  }
  return costs;
}

schedule::Costs StageCosts(const ModelCosts& costs,
                           absl::Span<const StageLayers> stages) {
  schedule::Costs result;
  for (const StageLayers& stage : stages) {
    LayerCost total;
    if (stage.embedding) total += costs.embedding;
    total += static_cast<double>(stage.blocks()) * costs.block;
    if (stage.head) total += costs.head;
    result.stages.push_back({.forward = total.forward,
                             .backward_input = total.backward_input,
                             .backward_weight = total.backward_weight});
  }
  return result;
}

absl::StatusOr<schedule::Costs> ModelledCosts(const ModelledTimes& times,
                                              const schedule::RankShape& shape,
                                              const ModelShape& model,
                                              const BatchShape& batch) {
  schedule::Costs costs = schedule::UniformCosts(shape, times.rank);
  if (!times.stages.empty()) {
    if (times.stages.size() != costs.stages.size()) {
      return Refuse("virtual.profile",
                    absl::StrCat("has the times of ", times.stages.size(),
                                 " stages, and the pipeline has ",
                                 costs.stages.size(), " (", shape.ranks,
                                 " ranks, chunks: ", shape.chunks, ")"));
    }
    for (size_t stage = 0; stage < times.stages.size(); ++stage) {
      costs.stages[stage] = times.stages[stage].times;
    }
  }
  costs.seconds_per_byte = times.seconds_per_byte;
  // Residuals, and the gradient of the tied embedding: f32.
  const int64_t boundary = batch.rows() * model.width * kFloatBytes;
  costs.bytes = {.activation = boundary,
                 .gradient = boundary,
                 .tied = model.vocab * model.width * kFloatBytes};
  return costs;
}

absl::Status CheckSplit(const ModelledTimes& times,
                        const schedule::Schedule& order) {
  if (times.stages.empty()) return absl::OkStatus();
  for (const std::vector<schedule::Command>& commands : order.orders) {
    for (const schedule::Command& command : commands) {
      if (command.op != schedule::Op::kBackwardInput &&
          command.op != schedule::Op::kBackwardWeight) {
        continue;
      }
      if (times.stages[command.stage].split) continue;
      return Refuse(
          "virtual.profile",
          absl::StrCat("stage ", command.stage,
                       " was measured with a full backward, and this schedule "
                       "splits it; measure with one that does"));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::coordinator::planner
