#include "coordinator/dispatch/spec_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/status/key_path.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/time_profile.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/text.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::dispatch {
namespace {

v1::DataConfig::Format FormatOf(spec::DataFormat format) {
  switch (format) {
    case spec::DataFormat::kText:
      return v1::DataConfig::FORMAT_TEXT;
    case spec::DataFormat::kJsonl:
      return v1::DataConfig::FORMAT_JSONL;
    case spec::DataFormat::kNanogpt:
      return v1::DataConfig::FORMAT_NANOGPT;
    case spec::DataFormat::kLlmc:
    case spec::DataFormat::kMegatron:
      break;  // The parser refuses them.
  }
  return v1::DataConfig::FORMAT_UNSPECIFIED;
}

// The times of the virtual device. InvalidArgument: a profile that is none.
absl::StatusOr<planner::ModelledTimes> ModelledTimesOf(const NewJob& job) {
  const spec::VirtualSpec& spec = job.spec.virtual_times;
  planner::ModelledTimes times = {
      .rank = {.forward = absl::ToDoubleSeconds(spec.forward),
               .backward_input = absl::ToDoubleSeconds(spec.backward_input),
               .backward_weight = absl::ToDoubleSeconds(spec.backward_weight),
               .transfer = absl::ToDoubleSeconds(spec.transfer)}};
  if (spec.bandwidth.has_value()) {
    times.seconds_per_byte = 1 / static_cast<double>(*spec.bandwidth);
  }
  if (spec.profile.has_value()) {
    absl::StatusOr<std::vector<planner::ModelledStage>> stages =
        ParseTimeProfile(job.profile_text);
    if (!stages.ok()) {
      return common::status::WithKeyPath(stages.status(), "virtual.profile");
    }
    times.stages = *std::move(stages);
  }
  return times;
}

}  // namespace

v1::ModelConfig ModelConfigOf(const spec::ModelSpec& model) {
  v1::ModelConfig config;
  config.set_family(model.family == spec::ModelFamily::kGpt2
                        ? v1::ModelConfig::FAMILY_GPT2
                        : v1::ModelConfig::FAMILY_LLAMA);
  config.set_layers(model.layers);
  config.set_width(model.width);
  config.set_heads(model.heads);
  config.set_kv_heads(model.kv_heads);
  config.set_head_dim(model.head_dim);
  config.set_ffn_width(model.ffn_width);
  config.set_context(model.context);
  config.set_vocab(model.vocab);
  config.set_tied_embeddings(model.tied_embeddings);
  config.set_dropout(model.dropout);
  config.set_norm_epsilon(model.norm_eps);
  config.set_rope_theta(model.rope_theta);
  config.set_init_std(model.init_std);
  const spec::RopeScaling& scaling = model.rope_scaling;
  if (scaling.kind != spec::RopeScalingKind::kNone) {
    v1::ModelConfig::RopeScaling& rope = *config.mutable_rope_scaling();
    rope.set_kind(scaling.kind == spec::RopeScalingKind::kLinear
                      ? v1::ModelConfig::RopeScaling::KIND_LINEAR
                      : v1::ModelConfig::RopeScaling::KIND_LLAMA3);
    rope.set_factor(scaling.factor);
    rope.set_low_freq_factor(scaling.low_freq_factor);
    rope.set_high_freq_factor(scaling.high_freq_factor);
    rope.set_original_context(scaling.original_context);
  }
  return config;
}

v1::OptimizerConfig OptimizerConfigOf(const spec::OptimizerSpec& optimizer) {
  v1::OptimizerConfig config;
  config.set_kind(optimizer.kind == spec::OptimizerKind::kAdamW
                      ? v1::OptimizerConfig::KIND_ADAMW
                      : v1::OptimizerConfig::KIND_SGD);
  config.set_beta1(optimizer.beta1);
  config.set_beta2(optimizer.beta2);
  config.set_epsilon(optimizer.eps);
  config.set_weight_decay(optimizer.weight_decay);
  config.set_momentum(optimizer.momentum);
  return config;
}

v1::DataConfig DataConfigOf(const spec::JobSpec& spec) {
  const spec::DataSpec& data = spec.data;
  v1::DataConfig config;
  config.set_train_path(data.train);
  if (data.validation.has_value()) {
    config.set_validation_path(data.validation->path);
    config.set_validation_millionths(data.validation->share_millionths);
  }
  config.set_format(data.format_by_name ? v1::DataConfig::FORMAT_UNSPECIFIED
                                        : FormatOf(data.format));
  config.set_field(data.field);
  config.set_order(data.order == spec::DataOrder::kShuffled
                       ? v1::DataConfig::ORDER_SHUFFLED
                       : v1::DataConfig::ORDER_SEQUENTIAL);
  if (data.sequence_length.has_value()) {
    config.set_sequence_length(*data.sequence_length);
  } else {
    config.set_text_sequence_length(spec::DefaultSequenceLength(spec.model));
  }
  return config;
}

void SetDecidedByData(const spec::JobSpec& spec,
                      planner::PlanRequest& request) {
  request.model.vocab = spec.model.vocab;
  request.batch.sequence_length =
      spec.data.sequence_length.value_or(spec.model.context);
}

absl::StatusOr<planner::PlanRequest> PlanRequestOf(const NewJob& job) {
  const spec::JobSpec& spec = job.spec;
  const spec::ModelSpec& model = spec.model;
  planner::PlanRequest request;
  request.model = {.family = model.family == spec::ModelFamily::kGpt2
                                 ? planner::Family::kGpt2
                                 : planner::Family::kLlama,
                   .layers = model.layers,
                   .width = model.width,
                   .heads = model.heads,
                   .kv_heads = model.kv_heads,
                   .head_dim = model.head_dim,
                   .ffn_width = model.ffn_width,
                   .context = model.context,
                   .tied = model.tied_embeddings,
                   .dropout = model.dropout > 0};
  request.batch.micro_batch = spec.batch.micro_batch.value_or(1);
  SetDecidedByData(spec, request);
  request.ranks = static_cast<int>(spec.pipeline.stages.value_or(1));
  const bool searched = spec.pipeline.schedule == spec::ScheduleKind::kAuto;
  request.chunks = static_cast<int>(
      spec.pipeline.chunks.value_or(searched ? schedule::kChunksToTry : 1));
  request.micro_batches = static_cast<int>(spec.batch.micro_batches);
  request.recompute = spec.pipeline.recompute == spec::Recompute::kFull
                          ? planner::Recompute::kFull
                          : planner::Recompute::kNone;
  request.optimizer = spec.optimizer.kind == spec::OptimizerKind::kAdamW
                          ? planner::Optimizer::kAdamW
                      : spec.optimizer.momentum > 0
                          ? planner::Optimizer::kSgdMomentum
                          : planner::Optimizer::kSgd;
  request.partition = spec.pipeline.partition;
  request.memory_limit = spec.pipeline.memory_limit;
  // The generators' names are those of the job file.
  request.schedule = std::string(
      spec::NameOf(spec::kScheduleKindNames, spec.pipeline.schedule));
  if (spec.pipeline.schedule == spec::ScheduleKind::kFile) {
    schedule::CsvOptions options{.ranks = request.ranks,
                                 .micro_batches = request.micro_batches,
                                 .name = spec.pipeline.schedule_file};
    if (spec.pipeline.chunks.has_value()) options.chunks = request.chunks;
    absl::StatusOr<schedule::Schedule> given =
        schedule::ParseCsv(job.schedule_text, options);
    if (!given.ok()) {
      return common::status::WithKeyPath(given.status(), "pipeline.schedule");
    }
    request.chunks = given->chunks();
    request.given = *std::move(given);
  }
  if (spec.device == spec::DeviceKind::kVirtual) {
    ASSIGN_OR_RETURN(request.modelled, ModelledTimesOf(job));
  }
  return request;
}

}  // namespace penstock::coordinator::dispatch
