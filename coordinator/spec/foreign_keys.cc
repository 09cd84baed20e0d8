#include "coordinator/spec/foreign_keys.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace penstock::coordinator::spec {
namespace {

struct ForeignKey {
  absl::string_view key;
  absl::string_view tool;
  absl::string_view hint;  // what the job file has instead
};

constexpr absl::string_view kHf = "Hugging Face Trainer";
constexpr absl::string_view kHfConfig = "Hugging Face config.json";
constexpr absl::string_view kNano = "nanoGPT";
constexpr absl::string_view kMega = "Megatron-LM";
constexpr absl::string_view kDs = "DeepSpeed";
constexpr absl::string_view kTitan = "torchtitan";

constexpr absl::string_view kDerivedM =
    "the number of micro-batches is derived: batch.global / "
    "(batch.micro_batch * replicas)";
constexpr absl::string_view kNoTensorParallel =
    "there is no tensor, context or expert parallelism; leave it out";

constexpr ForeignKey kForeignKeys[] = {
    // Batch.
    {"per_device_train_batch_size", kHf, "write batch.micro_batch"},
    {"train_batch_size", kDs, "write batch.global"},
    {"train_micro_batch_size_per_gpu", kDs, "write batch.micro_batch"},
    {"micro_batch_size", kMega, "write batch.micro_batch"},
    {"global_batch_size", kMega, "write batch.global"},
    {"batch_size", kNano,
     "write batch.micro_batch (sequences a micro-batch) "
     "and batch.global (sequences a step)"},
    {"gradient_accumulation_steps", kHf, kDerivedM},
    {"grad_accumulation_steps", kTitan, kDerivedM},
    {"num_microbatches", kMega, kDerivedM},
    {"micro_batches", kDs, kDerivedM},
    {"rampup_batch_size", kMega, "batch.global is the same at every step"},
    // Length of the job.
    {"max_steps", kHf, "write steps"},
    {"max_iters", kNano, "write steps"},
    {"train_iters", kMega, "write steps"},
    {"training_steps", kTitan, "write steps"},
    {"num_steps", kTitan, "write steps"},
    {"train_samples", kMega, "write steps: samples / batch.global"},
    {"num_train_epochs", kHf, "write epochs"},
    {"num_epochs", kHf, "write epochs"},
    // Optimizer.
    {"learning_rate", kHf, "write optimizer.lr"},
    {"adam_beta1", kHf, "write optimizer.betas: [beta1, beta2]"},
    {"adam_beta2", kHf, "write optimizer.betas: [beta1, beta2]"},
    {"beta1", kNano, "write optimizer.betas: [beta1, beta2]"},
    {"beta2", kNano, "write optimizer.betas: [beta1, beta2]"},
    {"adam_epsilon", kHf, "write optimizer.eps"},
    {"adam_eps", kMega, "write optimizer.eps"},
    {"max_grad_norm", kHf, "write optimizer.clip_norm"},
    {"grad_clip", kNano, "write optimizer.clip_norm"},
    {"clip_grad", kMega, "write optimizer.clip_norm"},
    {"gradient_clipping", kDs, "write optimizer.clip_norm"},
    {"optim", kHf, "write optimizer.kind"},
    {"sgd_momentum", kMega, "write optimizer.momentum"},
    // Learning rate schedule.
    {"lr_scheduler", kDs, "write lr_schedule.kind"},
    {"lr_scheduler_type", kHf, "write lr_schedule.kind"},
    {"lr_decay_style", kMega, "write lr_schedule.kind"},
    {"warmup_iters", kNano, "write lr_schedule.warmup_steps"},
    {"lr_warmup_iters", kMega, "write lr_schedule.warmup_steps"},
    {"warmup_num_steps", kDs, "write lr_schedule.warmup_steps"},
    {"warmup_ratio", kHf, "write lr_schedule.warmup_steps"},
    {"lr_decay_iters", kNano, "write lr_schedule.decay_steps"},
    {"min_lr", kNano, "write lr_schedule.min_ratio: min_lr / lr"},
    {"decay_lr", kNano, "write lr_schedule.kind: constant or cosine"},
    // Model.
    {"n_layer", kNano, "write model.layers"},
    {"num_hidden_layers", kHfConfig, "write model.layers"},
    {"num_layers", kMega, "write model.layers"},
    {"n_embd", kNano, "write model.width"},
    {"hidden_size", kHfConfig, "write model.width"},
    {"d_model", kHfConfig, "write model.width"},
    {"dim", kTitan, "write model.width"},
    {"n_head", kNano, "write model.heads"},
    {"num_attention_heads", kHfConfig, "write model.heads"},
    {"n_heads", kTitan, "write model.heads"},
    {"num_key_value_heads", kHfConfig, "write model.kv_heads"},
    {"n_kv_heads", kTitan, "write model.kv_heads"},
    {"num_query_groups", kMega, "write model.kv_heads"},
    {"intermediate_size", kHfConfig, "write model.ffn_width"},
    {"n_inner", kHfConfig, "write model.ffn_width"},
    {"ffn_hidden_size", kMega, "write model.ffn_width"},
    {"kv_channels", kMega, "write model.head_dim"},
    {"block_size", kNano,
     "write model.context (longest sequence), and data.sequence_length where "
     "training is shorter"},
    {"max_position_embeddings", kHfConfig, "write model.context"},
    {"n_positions", kHfConfig, "write model.context"},
    {"n_ctx", kHfConfig, "write model.context"},
    {"vocab_size", kHfConfig, "write model.vocab"},
    {"padded_vocab_size", kMega, "write model.vocab"},
    {"tie_word_embeddings", kHfConfig, "write model.tied_embeddings"},
    {"untie_embeddings_and_output_weights", kMega,
     "write model.tied_embeddings"},
    {"initializer_range", kHfConfig, "write model.init_std"},
    {"init_method_std", kMega, "write model.init_std"},
    {"layer_norm_epsilon", kHfConfig, "write model.norm_eps"},
    {"rms_norm_eps", kHfConfig, "write model.norm_eps"},
    {"rope_parameters", kHfConfig,
     "write model.rope_theta and model.rope_scaling"},
    {"rotary_base", kMega, "write model.rope_theta"},
    {"hidden_dropout", kMega, "write model.dropout"},
    {"attention_dropout", kHfConfig, "write model.dropout"},
    {"resid_pdrop", kHfConfig, "write model.dropout"},
    {"embd_pdrop", kHfConfig, "write model.dropout"},
    {"attn_pdrop", kHfConfig, "write model.dropout"},
    {"model_type", kHfConfig, "write model.family"},
    {"model_name_or_path", kHf, "write model.from"},
    {"init_from", kNano, "write model.from: FOLDER"},
    {"bias", kNano, "the family decides: gpt2 has biases, llama none"},
    // Data.
    {"dataset", kNano, "write data.train"},
    {"train_file", kHf, "write data.train"},
    {"data_path", kMega, "write data.train, or data.sources for a mixture"},
    {"train_data_path", kMega, "write data.train"},
    {"validation_file", kHf, "write data.validation"},
    {"valid_data_path", kMega, "write data.validation"},
    {"seq_length", kMega, "write data.sequence_length"},
    {"seq_len", kTitan, "write data.sequence_length"},
    {"max_seq_length", kHf, "write data.sequence_length"},
    {"text_column", kHf, "write data.field"},
    {"tokenizer_name", kHf, "write data.tokenizer"},
    {"tokenizer_type", kMega, "write data.tokenizer"},
    {"tokenizer_model", kMega, "write data.tokenizer"},
    // Pipeline.
    {"pipeline_model_parallel_size", kMega, "write pipeline.stages"},
    {"pipeline_parallel_degree", kTitan, "write pipeline.stages"},
    {"pipeline_parallel_size", kDs, "write pipeline.stages"},
    {"num_stages", kDs, "write pipeline.stages"},
    {"pp", kTitan, "write pipeline.stages"},
    {"num_layers_per_virtual_pipeline_stage", kMega, "write pipeline.chunks"},
    {"virtual_pipeline_model_parallel_size", kMega, "write pipeline.chunks"},
    {"pipeline_parallel_schedule", kTitan, "write pipeline.schedule"},
    {"partition_method", kDs, "write pipeline.partition: auto or a list"},
    {"gradient_checkpointing", kHf, "write pipeline.recompute: full"},
    {"activation_checkpointing", kDs, "write pipeline.recompute: full"},
    {"recompute_activations", kMega, "write pipeline.recompute: selective"},
    {"recompute_granularity", kMega, "write pipeline.recompute"},
    {"data_parallel_size", kMega, "write replicas"},
    {"dp", kTitan, "write replicas"},
    {"tensor_model_parallel_size", kMega, kNoTensorParallel},
    {"context_parallel_size", kMega, kNoTensorParallel},
    {"expert_model_parallel_size", kMega, kNoTensorParallel},
    {"tensor_parallel_degree", kTitan, kNoTensorParallel},
    {"zero_optimization", kDs,
     "the pipeline shards the model; there is no ZeRO; leave it out"},
    {"fsdp", kHf, "the pipeline shards the model; leave it out"},
    // Precision, evaluation, checkpoints, the rest.
    {"bf16", kHf, "write precision: bf16"},
    {"fp16", kHf, "fp16 is not offered; write precision: bf16 or f32"},
    {"dtype", kNano, "write precision: f32 or bf16"},
    {"params_dtype", kMega, "write precision"},
    {"eval_interval", kNano, "write evaluate.every"},
    {"eval_steps", kHf, "write evaluate.every"},
    {"eval_iters", kNano, "write evaluate.batches"},
    {"save_steps", kHf, "write checkpoint.every"},
    {"save_interval", kMega, "write checkpoint.every"},
    {"save_total_limit", kHf, "write checkpoint.keep"},
    {"save", kMega, "write checkpoint.dir"},
    {"output_dir", kHf, "give `penstock run --run-dir DIR`"},
    {"out_dir", kNano, "give `penstock run --run-dir DIR`"},
    {"resume_from_checkpoint", kHf, "write resume_from"},
    {"load", kMega, "write resume_from, or model.from for weights only"},
    {"report_to", kHf, "write trackers"},
    {"wandb_log", kNano, "write trackers"},
    {"tensorboard_dir", kMega, "write trackers.tensorboard"},
    {"log_interval", kNano, "every step is in metrics.jsonl; leave it out"},
    {"logging_steps", kHf, "every step is in metrics.jsonl; leave it out"},
    {"compile", kNano, "there is nothing to compile; leave it out"},
};

std::string Normalised(absl::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(word),
                             {{"-", ""}, {"_", ""}, {".", ""}, {" ", ""}});
}

// Edits (insert, delete, replace, swap neighbours) between two short words.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> before(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> now(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

absl::string_view LastComponent(absl::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 = 0: the whole path
}

}  // namespace

absl::string_view Nearest(absl::string_view word,
                          absl::Span<const absl::string_view> words) {
  constexpr size_t kLongest = 48;
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = Normalised(word);
  absl::string_view best;
  int best_distance = 0;
  for (const absl::string_view candidate : words) {
    const std::string normalised = Normalised(candidate);
    const int distance = EditDistance(wanted, normalised);
    // One edit in a short word, two from six letters on.
    const int allowed = std::min(wanted.size(), normalised.size()) < 6 ? 1 : 2;
    const bool near =
        distance == 0 || (normalised.size() > 2 && distance <= allowed);
    if (near && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string HintForUnknownKey(absl::string_view section, absl::string_view key,
                              absl::Span<const absl::string_view> known_paths) {
  const std::string prefix = section.empty() ? "" : absl::StrCat(section, ".");
  std::vector<absl::string_view> siblings;
  std::vector<absl::string_view> elsewhere;
  for (const absl::string_view path : known_paths) {
    const bool below = absl::StartsWith(path, prefix);
    const absl::string_view rest =
        below ? path.substr(prefix.size()) : absl::string_view();
    if (below) siblings.push_back(rest.substr(0, rest.find('.')));
    if (LastComponent(path) == key) elsewhere.push_back(path);
  }
  // A dotted key is meant as --set takes it.
  if (absl::StrContains(key, '.') &&
      std::find(known_paths.begin(), known_paths.end(), key) !=
          known_paths.end()) {
    return absl::StrCat("write ", LastComponent(key), " inside the section ",
                        key.substr(0, key.rfind('.')),
                        " (dotted keys are for --set)");
  }
  if (elsewhere.size() == 1) {
    return absl::StrCat("did you mean ", elsewhere[0], "?");
  }
  const std::string plain =
      absl::StrReplaceAll(absl::AsciiStrToLower(key), {{"-", "_"}});
  for (const ForeignKey& foreign : kForeignKeys) {
    if (foreign.key == plain) {
      return absl::StrCat("this is ", foreign.tool, "'s key: ", foreign.hint);
    }
  }
  const absl::string_view nearest = Nearest(key, siblings);
  if (!nearest.empty()) {
    return absl::StrCat("did you mean ", prefix, nearest, "?");
  }
  if (elsewhere.size() > 1) {
    return absl::StrCat("did you mean ", elsewhere[0], " or ", elsewhere[1],
                        "?");
  }
  return "";
}

}  // namespace penstock::coordinator::spec
