#include "coordinator/spec/key_table.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/value_types.h"

namespace penstock::coordinator::spec {
namespace {

constexpr int64_t kAnyMax = std::numeric_limits<int64_t>::max();

std::vector<KeyRow> ModelRows() {
  return {
      {"model.from", To(Text("a folder"), &ModelSpec::from)},
      {"model.family", To(WordOf(kModelFamilyNames), &ModelSpec::family)},
      {"model.layers", To(Whole(1, kMaxLayers), &ModelSpec::layers)},
      {"model.width", To(Whole(1, kMaxWidth), &ModelSpec::width)},
      {"model.heads", To(Whole(1, kMaxWidth), &ModelSpec::heads)},
      {"model.kv_heads", To(Whole(1, kMaxWidth), &Draft::kv_heads)},
      {"model.head_dim", To(Whole(1, kMaxWidth), &Draft::head_dim)},
      {"model.ffn_width", To(Whole(1, kMaxFfnWidth), &Draft::ffn_width)},
      {"model.context", To(Whole(1, kMaxContext), &ModelSpec::context)},
      {"model.vocab", To(Whole(1, kMaxVocab), &Draft::vocab)},
      {"model.tied_embeddings", To(Flag(), &Draft::tied_embeddings)},
      {"model.dropout", To(BelowOne(), &ModelSpec::dropout)},
      {"model.norm_eps", To(AnyPositive(), &ModelSpec::norm_eps)},
      {"model.rope_theta", To(AtLeastOne(), &ModelSpec::rope_theta)},
      {"model.rope_scaling", ReadNone},
      {"model.rope_scaling.rope_type",
       To(WordOf(kRopeScalingKindNames), &RopeScaling::kind)},
      {"model.rope_scaling.type",
       To(WordOf(kRopeScalingKindNames), &Draft::rope_type)},
      {"model.rope_scaling.factor", To(AtLeastOne(), &Draft::rope_factor)},
      {"model.rope_scaling.low_freq_factor",
       To(AnyPositive(), &Draft::rope_low)},
      {"model.rope_scaling.high_freq_factor",
       To(AnyPositive(), &Draft::rope_high)},
      {"model.rope_scaling.original_max_position_embeddings",
       To(Whole(1, kMaxContext), &Draft::rope_original_context)},
      {"model.init_std", To(AnyPositive(), &ModelSpec::init_std)},
  };
}

std::vector<KeyRow> DataRows() {
  return {
      {"data.train", To(Text("a file, folder or prefix"), &DataSpec::train)},
      {"data.sources", ReadSources},
      {"data.format", ToOr("auto", WordOf(kDataFormatNames), &Draft::format)},
      {"data.field", To(Text("the name of a field"), &DataSpec::field)},
      {"data.order", To(WordOf(kDataOrderNames), &DataSpec::order)},
      {"data.sequence_length",
       To(Whole(1, kMaxContext), &DataSpec::sequence_length)},
      {"data.validation", ReadValidation},
      {"data.tokenizer", ToOr("byte", Text("a path"), &DataSpec::tokenizer)},
  };
}

std::vector<KeyRow> PipelineRows() {
  return {
      {"batch.global", To(Whole(1, kMaxGlobalBatch), &BatchSpec::global)},
      {"batch.micro_batch",
       ToOr("auto", Whole(1, kMaxGlobalBatch), &BatchSpec::micro_batch)},
      {"pipeline.stages",
       ToOr("auto", Whole(1, kMaxStages), &PipelineSpec::stages)},
      {"pipeline.schedule", ReadSchedule},
      {"pipeline.chunks", ToOr("auto", Whole(1, kMaxChunks), &Draft::chunks)},
      {"pipeline.recompute",
       To(WordOf(kRecomputeNames), &PipelineSpec::recompute)},
      {"pipeline.partition", ReadPartition},
      {"pipeline.memory_limit",
       ToOr("none", ByteSize(), &PipelineSpec::memory_limit)},
      {"pipeline.rebalance", To(Flag(), &PipelineSpec::rebalance)},
      {"pipeline.mode", To(WordOf(kPipelineModeNames), &PipelineSpec::mode)},
      {"replicas", To(Whole(1, kMaxStages), &JobSpec::replicas)},
      {"precision", To(WordOf(kPrecisionNames), &JobSpec::precision)},
  };
}

std::vector<KeyRow> OptimizerRows() {
  return {
      {"optimizer.kind", To(WordOf(kOptimizerKindNames), &OptimizerSpec::kind)},
      {"optimizer.lr", To(AnyPositive(), &OptimizerSpec::lr)},
      {"optimizer.betas", ReadBetas},
      {"optimizer.eps", To(AnyPositive(), &OptimizerSpec::eps)},
      {"optimizer.weight_decay",
       To(NotNegative(), &OptimizerSpec::weight_decay)},
      {"optimizer.clip_norm",
       ToOr("none", AnyPositive(), &OptimizerSpec::clip_norm)},
      {"optimizer.momentum", To(BelowOne(), &OptimizerSpec::momentum)},
      {"optimizer.on_nonfinite",
       To(WordOf(kOnNonfiniteNames), &OptimizerSpec::on_nonfinite)},
      {"lr_schedule.kind", To(WordOf(kLrKindNames), &LrSchedule::kind)},
      {"lr_schedule.warmup_steps",
       To(Whole(0, kMaxSteps), &LrSchedule::warmup_steps)},
      {"lr_schedule.decay_steps",
       To(Whole(1, kMaxSteps), &LrSchedule::decay_steps)},
      {"lr_schedule.min_ratio", To(UpToOne(), &LrSchedule::min_ratio)},
      {"steps", ToOr("none", Whole(1, kMaxSteps), &JobSpec::steps)},
      {"epochs", ToOr("none", Whole(1, kMaxSteps), &JobSpec::epochs)},
      {"seed", To(Whole(0, kAnyMax), &JobSpec::seed)},
  };
}

std::vector<KeyRow> OperationRows() {
  return {
      {"evaluate", ReadNone},
      {"evaluate.every", To(Whole(1, kMaxSteps), &EvaluateSpec::every)},
      {"evaluate.batches", To(Whole(1, kMaxSteps), &EvaluateSpec::batches)},
      {"checkpoint.every", To(Whole(1, kMaxSteps), &CheckpointSpec::every)},
      {"checkpoint.keep", To(Whole(1, kMaxSteps), &CheckpointSpec::keep)},
      {"checkpoint.dir", To(Text("a folder"), &CheckpointSpec::dir)},
      {"resume_from",
       ToOr("none", Text("a checkpoint"), &JobSpec::resume_from)},
      {"recovery.mode", To(WordOf(kRecoveryModeNames), &RecoverySpec::mode)},
      {"recovery.every_steps",
       To(Whole(1, kMaxSteps), &RecoverySpec::every_steps)},
      {"recovery.max_restarts",
       To(Whole(0, kMaxSteps), &RecoverySpec::max_restarts)},
      {"recovery.window_steps",
       To(Whole(1, kMaxSteps), &RecoverySpec::window_steps)},
      {"recovery.shrink", To(Flag(), &RecoverySpec::shrink)},
      {"recovery.allow_mixed", To(Flag(), &RecoverySpec::allow_mixed)},
      {"scheduling.pool",
       To(Text("the name of a pool"), &SchedulingSpec::pool)},
      {"scheduling.priority",
       To(Whole(-1000000, 1000000), &SchedulingSpec::priority)},
      {"scheduling.time_limit",
       ToOr("none", Time(), &SchedulingSpec::time_limit)},
      {"scheduling.queue_timeout",
       ToOr("none", Time(), &SchedulingSpec::queue_timeout)},
      {"device", To(WordOf(kDeviceKindNames), &JobSpec::device)},
      {"virtual.forward", To(Time(), &VirtualSpec::forward)},
      {"virtual.backward_input", To(Time(), &VirtualSpec::backward_input)},
      {"virtual.backward_weight", To(Time(), &VirtualSpec::backward_weight)},
      {"virtual.transfer", To(Time(), &VirtualSpec::transfer)},
      {"virtual.bandwidth", ToOr("none", ByteSize(), &VirtualSpec::bandwidth)},
      {"virtual.profile",
       ToOr("none", Text("a profile.json"), &VirtualSpec::profile)},
      {"threads_per_stage",
       ToOr("auto", Whole(1, 1024), &JobSpec::threads_per_stage)},
      {"trackers.tensorboard", To(Flag(), &Trackers::tensorboard)},
      {"trackers.csv", To(Flag(), &Trackers::csv)},
  };
}

std::vector<KeyRow> MakeTable() {
  std::vector<KeyRow> table = {
      {"version", To(Whole(1, 1), &JobSpec::version)},
      {"name", To(Text("a name"), &JobSpec::name)},
  };
  for (std::vector<KeyRow> rows : {ModelRows(), DataRows(), PipelineRows(),
                                   OptimizerRows(), OperationRows()}) {
    for (KeyRow& row : rows) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

const std::vector<KeyRow>& KeyTable() {
  // Constant after the first call; never destroyed.
  static const auto* const table = new std::vector<KeyRow>(MakeTable());
  return *table;
}

}  // namespace penstock::coordinator::spec
