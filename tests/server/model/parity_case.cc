#include "tests/server/model/parity_case.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/checkpoint/safetensors_file.h"

namespace penstock::testing {
namespace {

using server::model::Family;
using server::model::ModelConfig;

absl::StatusOr<nlohmann::json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(path);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

absl::StatusOr<NamedTensors> ReadTensors(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file,
                   server::checkpoint::SafetensorsFile::Open(path));
  NamedTensors tensors;
  for (const auto& tensor : file.header().tensors) {
    std::vector<float>& values = tensors[tensor.name];
    values.resize(tensor.elements());
    RETURN_IF_ERROR(file.ReadF32(tensor, absl::MakeSpan(values)));
  }
  return tensors;
}

// The product's reader of config.json is the coordinator's; this one reads the
// keys that differ among the cases.
ModelConfig ReadConfig(const nlohmann::json& json) {
  ModelConfig config;
  config.vocab = json["vocab_size"];
  config.tied = json["tie_word_embeddings"];
  config.init_std = json["initializer_range"];
  if (json["model_type"] == "gpt2") {
    config.family = Family::kGpt2;
    config.layers = json["n_layer"];
    config.width = json["n_embd"];
    config.heads = config.kv_heads = json["n_head"];
    config.head_dim = config.width / config.heads;
    config.ffn_width = json["n_inner"].is_null()
                           ? 4 * config.width
                           : json["n_inner"].get<int64_t>();
    config.context = json["n_positions"];
    config.norm_eps = json["layer_norm_epsilon"];
    return config;
  }
  config.family = Family::kLlama;
  config.layers = json["num_hidden_layers"];
  config.width = json["hidden_size"];
  config.heads = json["num_attention_heads"];
  config.kv_heads = json["num_key_value_heads"];
  config.head_dim = json["head_dim"];
  config.ffn_width = json["intermediate_size"];
  config.context = json["max_position_embeddings"];
  config.norm_eps = json["rms_norm_eps"];
  config.rope_theta = json["rope_parameters"]["rope_theta"];
  return config;
}

absl::Status ReadSequences(const std::string& path, ParityCase& parity) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    std::vector<int32_t> ids = json["input_ids"];
    std::vector<int32_t> labels = json["labels"];
    // Position t predicts the label at t + 1.
    ids.pop_back();
    labels.erase(labels.begin());
    parity.sequence_length = static_cast<int64_t>(ids.size());
    parity.ids.push_back(std::move(ids));
    parity.labels.push_back(std::move(labels));
  }
  return absl::OkStatus();
}

}  // namespace

server::model::ParameterStore::Source ParityCase::Source() const {
  return [this](const server::model::ParameterSpec& spec,
                absl::Span<float> values) {
    const auto tensor = initial.find(spec.name);
    if (tensor == initial.end() || tensor->second.size() != values.size()) {
      return absl::NotFoundError(spec.name);
    }
    std::copy(tensor->second.begin(), tensor->second.end(), values.begin());
    return absl::OkStatus();
  };
}

std::vector<ParityListing> ParityListings() {
  return {{"gpt2_tiny", {1, 2, 4, 8}},
          {"gpt2_untied_odd", {1, 2, 3, 6}},
          {"gpt2_masked", {1, 2, 4, 8}},
          {"llama_gqa", {1, 2, 4, 8}},
          {"llama_tied", {1, 2, 4}}};
}

std::vector<std::string> ParityCaseNames() {
  std::vector<std::string> names;
  for (const ParityListing& listing : ParityListings()) {
    names.push_back(listing.name);
  }
  return names;
}

absl::StatusOr<ParityCase> ReadParityCase(const std::string& folder,
                                          const std::string& name) {
  const std::string base = absl::StrCat(folder, "/", name, "/");
  ParityCase parity{.name = name};
  ASSIGN_OR_RETURN(const nlohmann::json config,
                   ReadJson(base + "model/config.json"));
  parity.model = ReadConfig(config);
  ASSIGN_OR_RETURN(const nlohmann::json expected,
                   ReadJson(base + "expected.json"));
  parity.learning_rate = expected["lr"];
  parity.sequences_per_step = expected["sequences_per_step"];
  parity.micro_batch_sizes =
      expected["micro_batch_sizes"].get<std::vector<int64_t>>();
  for (const ParityListing& listing : ParityListings()) {
    if (listing.name == name &&
        listing.micro_batch_sizes != parity.micro_batch_sizes) {
      return absl::FailedPreconditionError(
          absl::StrCat(base, "expected.json lists other micro-batch sizes"));
    }
  }
  for (const nlohmann::json& step : expected["steps"]) {
    parity.steps.push_back(
        {.loss = step["loss"],
         .valid_tokens = step["valid_tokens"],
         .grad_norm = step["grad_norm"],
         .sequence_loss =
             step["loss_sum_per_sequence"].get<std::vector<double>>()});
  }
  RETURN_IF_ERROR(ReadSequences(base + "train.jsonl", parity));
  ASSIGN_OR_RETURN(parity.initial,
                   ReadTensors(base + "model/model.safetensors"));
  ASSIGN_OR_RETURN(parity.gradients, ReadTensors(base + "grads.safetensors"));
  ASSIGN_OR_RETURN(parity.weights, ReadTensors(base + "final.safetensors"));
  return parity;
}

}  // namespace penstock::testing
