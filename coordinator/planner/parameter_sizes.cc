#include "coordinator/planner/parameter_sizes.h"

#include <algorithm>
#include <initializer_list>

namespace penstock::coordinator::planner {
namespace {

ParameterGroup Vector(int64_t elements) {
  return {.elements = elements, .largest = elements};
}

// (in, out), GPT-2's Conv1D.
ParameterGroup Matrix(int64_t in, int64_t out) {
  return {.elements = in * out,
          .largest = in * out,
          .in = in,
          .out = out,
          .columns = out};
}

// Matrices (out_i, in) of nn.Linear that act as one.
ParameterGroup Rows(int64_t in, std::initializer_list<int64_t> outs) {
  ParameterGroup group = {
      .tensors = static_cast<int>(outs.size()), .in = in, .columns = in};
  for (const int64_t out : outs) {
    group.out += out;
    group.largest = std::max(group.largest, in * out);
  }
  group.elements = in * group.out;
  return group;
}

// Sums `value` over the model's groups, each layer as often as it is there.
template <typename Value>
int64_t SumOverModel(const ModelShape& model, Value value) {
  int64_t total = 0;
  for (const ParameterGroup& group : EmbeddingGroups(model)) {
    total += value(group);
  }
  for (const ParameterGroup& group : BlockGroups(model)) {
    total += model.layers * value(group);
  }
  std::vector<ParameterGroup> head = HeadGroups(model);
  if (model.tied) head.pop_back();
  for (const ParameterGroup& group : head) total += value(group);
  return total;
}

}  // namespace

std::vector<ParameterGroup> EmbeddingGroups(const ModelShape& model) {
  std::vector<ParameterGroup> groups = {Vector(model.vocab * model.width)};
  if (model.family == Family::kGpt2) {
    groups.push_back(Vector(model.context * model.width));
  }
  return groups;
}

std::vector<ParameterGroup> BlockGroups(const ModelShape& model) {
  const int64_t width = model.width, ffn = model.ffn_width;
  const int64_t queries = model.heads * model.head_dim;
  const int64_t keys = model.kv_heads * model.head_dim;
  if (model.family == Family::kGpt2) {
    return {Vector(width),
            Vector(width),  // Norm: gain, bias.
            Matrix(width, 3 * width),
            Vector(3 * width),
            Matrix(width, width),
            Vector(width),
            Vector(width),
            Vector(width),  // Norm.
            Matrix(width, ffn),
            Vector(ffn),
            Matrix(ffn, width),
            Vector(width)};
  }
  return {Vector(width),                       // Norm.
          Rows(width, {queries, keys, keys}),  // q, k, v
          Rows(queries, {width}),
          Vector(width),            // Norm.
          Rows(width, {ffn, ffn}),  // gate, up
          Rows(ffn, {width})};
}

std::vector<ParameterGroup> HeadGroups(const ModelShape& model) {
  std::vector<ParameterGroup> groups = {Vector(model.width)};
  if (model.family == Family::kGpt2) groups.push_back(Vector(model.width));
  groups.push_back(Rows(model.width, {model.vocab}));
  return groups;
}

int64_t CountParameters(const ModelShape& model) {
  return SumOverModel(
      model, [](const ParameterGroup& group) { return group.tensors; });
}

int64_t CountElements(const ModelShape& model) {
  return SumOverModel(
      model, [](const ParameterGroup& group) { return group.elements; });
}

}  // namespace penstock::coordinator::planner
