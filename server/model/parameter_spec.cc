#include "server/model/parameter_spec.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"

namespace penstock::server::model {
namespace {

using device::Shape;
using device::WeightLayout;

// Collects a layer's groups; indices count from the layer's first parameter.
class Groups {
 public:
  Groups(std::string prefix, int64_t first_index)
      : prefix_(std::move(prefix)), index_(first_index) {}

  // A vector or table that is used as it is.
  void Plain(absl::string_view name, const Shape& shape, Initial initial,
             double std = 0) {
    ParameterGroup group;
    group.shape = shape;
    group.members.push_back(Spec(name, shape, initial, std));
    groups_.push_back(std::move(group));
  }

  // A matrix (in, out), GPT-2's Conv1D.
  void Conv1d(absl::string_view name, int64_t in, int64_t out, double std) {
    Plain(name, Shape({in, out}), Initial::kNormal, std);
    groups_.back().product = true;
    groups_.back().layout = WeightLayout::kInOut;
  }

  // Matrices (out_i, in) of nn.Linear that act as one of (sum out_i, in).
  struct Rows {
    absl::string_view name;
    int64_t out;
  };
  void Linear(std::initializer_list<Rows> members, int64_t in, double std) {
    ParameterGroup group;
    int64_t rows = 0;
    for (const Rows& member : members) {
      group.members.push_back(
          Spec(member.name, Shape({member.out, in}), Initial::kNormal, std));
      rows += member.out;
    }
    group.shape = Shape({rows, in});
    group.product = true;
    group.layout = WeightLayout::kOutIn;
    groups_.push_back(std::move(group));
  }

  std::vector<ParameterGroup> Take() { return std::move(groups_); }

 private:
  ParameterSpec Spec(absl::string_view name, const Shape& shape,
                     Initial initial, double std) {
    return {.name = absl::StrCat(prefix_, name),
            .shape = shape,
            .index = index_++,
            .initial = initial,
            .initial_std = std};
  }

  const std::string prefix_;
  int64_t index_;
  std::vector<ParameterGroup> groups_;
};

int64_t CountSpecs(const std::vector<ParameterGroup>& groups) {
  int64_t count = 0;
  for (const ParameterGroup& group : groups) {
    if (!group.tied_head) count += group.members.size();
  }
  return count;
}

std::vector<ParameterGroup> BlockAt(const ModelConfig& c, int64_t block,
                                    int64_t first_index) {
  const double std = c.init_std;
  if (c.family == Family::kGpt2) {
    // Hugging Face: the two projections into the residual stream start smaller
    // by the square root of their number.
    const double projection_std = std / std::sqrt(2.0 * c.layers);
    Groups g(absl::StrCat("transformer.h.", block, "."), first_index);
    g.Plain("ln_1.weight", Shape({c.width}), Initial::kOnes);
    g.Plain("ln_1.bias", Shape({c.width}), Initial::kZeros);
    g.Conv1d("attn.c_attn.weight", c.width, 3 * c.width, std);
    g.Plain("attn.c_attn.bias", Shape({3 * c.width}), Initial::kZeros);
    g.Conv1d("attn.c_proj.weight", c.width, c.width, projection_std);
    g.Plain("attn.c_proj.bias", Shape({c.width}), Initial::kZeros);
    g.Plain("ln_2.weight", Shape({c.width}), Initial::kOnes);
    g.Plain("ln_2.bias", Shape({c.width}), Initial::kZeros);
    g.Conv1d("mlp.c_fc.weight", c.width, c.ffn_width, std);
    g.Plain("mlp.c_fc.bias", Shape({c.ffn_width}), Initial::kZeros);
    g.Conv1d("mlp.c_proj.weight", c.ffn_width, c.width, projection_std);
    g.Plain("mlp.c_proj.bias", Shape({c.width}), Initial::kZeros);
    return g.Take();
  }
  const int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  Groups g(absl::StrCat("model.layers.", block, "."), first_index);
  g.Plain("input_layernorm.weight", Shape({c.width}), Initial::kOnes);
  g.Linear({{"self_attn.q_proj.weight", q},
            {"self_attn.k_proj.weight", kv},
            {"self_attn.v_proj.weight", kv}},
           c.width, std);
  g.Linear({{"self_attn.o_proj.weight", c.width}}, q, std);
  g.Plain("post_attention_layernorm.weight", Shape({c.width}), Initial::kOnes);
  g.Linear({{"mlp.gate_proj.weight", c.ffn_width},
            {"mlp.up_proj.weight", c.ffn_width}},
           c.width, std);
  g.Linear({{"mlp.down_proj.weight", c.width}}, c.ffn_width, std);
  return g.Take();
}

int64_t SpecsOfEmbedding(const ModelConfig& config) {
  return config.family == Family::kGpt2 ? 2 : 1;
}

void AppendOwned(std::vector<ParameterGroup> groups,
                 std::vector<ParameterSpec>& specs) {
  for (ParameterGroup& group : groups) {
    if (group.tied_head) continue;
    for (ParameterSpec& spec : group.members) specs.push_back(std::move(spec));
  }
}

}  // namespace

std::vector<ParameterGroup> EmbeddingParameters(const ModelConfig& c) {
  const bool gpt2 = c.family == Family::kGpt2;
  Groups g(gpt2 ? "transformer." : "model.", 0);
  g.Plain(gpt2 ? "wte.weight" : "embed_tokens.weight",
          Shape({c.vocab, c.width}), Initial::kNormal, c.init_std);
  if (gpt2) {
    g.Plain("wpe.weight", Shape({c.context, c.width}), Initial::kNormal,
            c.init_std);
  }
  return g.Take();
}

std::vector<ParameterGroup> BlockParameters(const ModelConfig& config,
                                            int64_t block) {
  const int64_t per_block = CountSpecs(BlockAt(config, 0, 0));
  return BlockAt(config, block, SpecsOfEmbedding(config) + block * per_block);
}

std::vector<ParameterGroup> HeadParameters(const ModelConfig& c) {
  const int64_t first =
      SpecsOfEmbedding(c) + c.layers * CountSpecs(BlockAt(c, 0, 0));
  std::vector<ParameterGroup> groups;
  int64_t next = first;
  if (c.family == Family::kGpt2) {
    Groups g("transformer.ln_f.", first);
    g.Plain("weight", Shape({c.width}), Initial::kOnes);
    g.Plain("bias", Shape({c.width}), Initial::kZeros);
    groups = g.Take();
    next += 2;
  } else {
    Groups g("model.norm.", first);
    g.Plain("weight", Shape({c.width}), Initial::kOnes);
    groups = g.Take();
    next += 1;
  }
  Groups projection("", next);
  projection.Linear({{"lm_head.weight", c.vocab}}, c.width, c.init_std);
  groups.push_back(projection.Take().front());
  if (c.tied) {
    groups.back().members = {EmbeddingParameters(c).front().members.front()};
    groups.back().tied_head = true;
  }
  return groups;
}

std::vector<ParameterSpec> CanonicalParameters(const ModelConfig& config) {
  const LayerRange whole{.embedding = true,
                         .first_block = 0,
                         .end_block = config.layers,
                         .head = true};
  return OwnedParameters(config, absl::MakeConstSpan(&whole, 1));
}

std::vector<ParameterSpec> OwnedParameters(
    const ModelConfig& config, absl::Span<const LayerRange> ranges) {
  std::vector<ParameterSpec> specs;
  for (const LayerRange& range : ranges) {
    if (range.embedding) AppendOwned(EmbeddingParameters(config), specs);
    for (int64_t b = range.first_block; b < range.end_block; ++b) {
      AppendOwned(BlockParameters(config, b), specs);
    }
    if (range.head) AppendOwned(HeadParameters(config), specs);
  }
  for (int64_t i = 1; i < static_cast<int64_t>(specs.size()); ++i) {
    CHECK_LT(specs[i - 1].index, specs[i].index) << "ranges must ascend ";
  }
  return specs;
}

}  // namespace penstock::server::model
