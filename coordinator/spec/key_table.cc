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
      {"model.from", To(
                         Text("a folder"),
                         [](Draft & d) -> auto& { return d.spec.model.from; })},
      {"model.family", To(
                           WordOf(kModelFamilyNames), [](Draft & d) -> auto& {
                             return d.spec.model.family;
                           })},
      {"model.layers", To(
                           Whole(1, kMaxLayers), [](Draft & d) -> auto& {
                             return d.spec.model.layers;
                           })},
      {"model.width", To(
                          Whole(1, kMaxWidth), [](Draft & d) -> auto& {
                            return d.spec.model.width;
                          })},
      {"model.heads", To(
                          Whole(1, kMaxWidth), [](Draft & d) -> auto& {
                            return d.spec.model.heads;
                          })},
      {"model.kv_heads",
       To(
           Whole(1, kMaxWidth), [](Draft & d) -> auto& { return d.kv_heads; })},
      {"model.head_dim",
       To(
           Whole(1, kMaxWidth), [](Draft & d) -> auto& { return d.head_dim; })},
      {"model.ffn_width", To(
                              Whole(1, kMaxFfnWidth),
                              [](Draft & d) -> auto& { return d.ffn_width; })},
      {"model.context", To(
                            Whole(1, kMaxContext), [](Draft & d) -> auto& {
                              return d.spec.model.context;
                            })},
      {"model.vocab",
       To(
           Whole(1, kMaxVocab), [](Draft & d) -> auto& { return d.vocab; })},
      {"model.tied_embeddings",
       To(
           Flag(), [](Draft & d) -> auto& { return d.tied_embeddings; })},
      {"model.dropout", To(
                            BelowOne(), [](Draft & d) -> auto& {
                              return d.spec.model.dropout;
                            })},
      {"model.norm_eps", To(
                             AnyPositive(), [](Draft & d) -> auto& {
                               return d.spec.model.norm_eps;
                             })},
      {"model.rope_theta", To(
                               AnyPositive(), [](Draft & d) -> auto& {
                                 return d.spec.model.rope_theta;
                               })},
      {"model.rope_scaling", ReadNone},
      {"model.rope_scaling.rope_type",
       To(
           WordOf(kRopeScalingKindNames),
           [](Draft & d) -> auto& { return d.spec.model.rope_scaling.kind; })},
      {"model.rope_scaling.factor",
       To(
           Number("a number of at least 1", [](double x) { return x >= 1; }),
           [](Draft & d) -> auto& { return d.rope_factor; })},
      {"model.rope_scaling.low_freq_factor",
       To(
           AnyPositive(), [](Draft & d) -> auto& { return d.rope_low; })},
      {"model.rope_scaling.high_freq_factor",
       To(
           AnyPositive(), [](Draft & d) -> auto& { return d.rope_high; })},
      {"model.rope_scaling.original_max_position_embeddings",
       To(
           Whole(1, kMaxContext),
           [](Draft & d) -> auto& { return d.rope_original_context; })},
      {"model.init_std", To(
                             AnyPositive(), [](Draft & d) -> auto& {
                               return d.spec.model.init_std;
                             })},
  };
}

std::vector<KeyRow> DataRows() {
  return {
      {"data.train", To(
                         Text("a file, folder or prefix"),
                         [](Draft & d) -> auto& { return d.spec.data.train; })},
      {"data.sources", ReadSources},
      {"data.format", ToOr(
                          "auto", WordOf(kDataFormatNames),
                          [](Draft & d) -> auto& { return d.format; })},
      {"data.field", To(
                         Text("the name of a field"),
                         [](Draft & d) -> auto& { return d.spec.data.field; })},
      {"data.order", To(
                         WordOf(kDataOrderNames),
                         [](Draft & d) -> auto& { return d.spec.data.order; })},
      {"data.sequence_length",
       To(
           Whole(1, kMaxContext),
           [](Draft & d) -> auto& { return d.spec.data.sequence_length; })},
      {"data.validation", ReadValidation},
      {"data.tokenizer", ToOr(
                             "byte", Text("a path"), [](Draft & d) -> auto& {
                               return d.spec.data.tokenizer;
                             })},
  };
}

std::vector<KeyRow> PipelineRows() {
  return {
      {"batch.global", To(
                           Whole(1, kMaxGlobalBatch), [](Draft & d) -> auto& {
                             return d.spec.batch.global;
                           })},
      {"batch.micro_batch",
       ToOr(
           "auto", Whole(1, kMaxGlobalBatch),
           [](Draft & d) -> auto& { return d.spec.batch.micro_batch; })},
      {"pipeline.stages",
       ToOr(
           "auto", Whole(1, kMaxStages),
           [](Draft & d) -> auto& { return d.spec.pipeline.stages; })},
      {"pipeline.schedule", ReadSchedule},
      {"pipeline.chunks", ToOr(
                              "auto", Whole(1, kMaxChunks),
                              [](Draft & d) -> auto& { return d.chunks; })},
      {"pipeline.recompute",
       To(
           WordOf(kRecomputeNames),
           [](Draft & d) -> auto& { return d.spec.pipeline.recompute; })},
      {"pipeline.partition", ReadPartition},
      {"pipeline.memory_limit", ToOr(
                                    "none", ByteSize(), [](Draft & d) -> auto& {
                                      return d.spec.pipeline.memory_limit;
                                    })},
      {"pipeline.rebalance", To(
                                 Flag(), [](Draft & d) -> auto& {
                                   return d.spec.pipeline.rebalance;
                                 })},
      {"pipeline.mode", To(
                            WordOf(kPipelineModeNames), [](Draft & d) -> auto& {
                              return d.spec.pipeline.mode;
                            })},
      {"replicas", To(
                       Whole(1, kMaxStages),
                       [](Draft & d) -> auto& { return d.spec.replicas; })},
      {"precision", To(
                        WordOf(kPrecisionNames),
                        [](Draft & d) -> auto& { return d.spec.precision; })},
  };
}

std::vector<KeyRow> OptimizerRows() {
  return {
      {"optimizer.kind",
       To(
           WordOf(kOptimizerKindNames),
           [](Draft & d) -> auto& { return d.spec.optimizer.kind; })},
      {"optimizer.lr", To(
                           AnyPositive(), [](Draft & d) -> auto& {
                             return d.spec.optimizer.lr;
                           })},
      {"optimizer.betas", ReadBetas},
      {"optimizer.eps", To(
                            AnyPositive(), [](Draft & d) -> auto& {
                              return d.spec.optimizer.eps;
                            })},
      {"optimizer.weight_decay", To(
                                     NotNegative(), [](Draft & d) -> auto& {
                                       return d.spec.optimizer.weight_decay;
                                     })},
      {"optimizer.clip_norm",
       ToOr(
           "none", AnyPositive(),
           [](Draft & d) -> auto& { return d.spec.optimizer.clip_norm; })},
      {"optimizer.momentum", To(
                                 BelowOne(), [](Draft & d) -> auto& {
                                   return d.spec.optimizer.momentum;
                                 })},
      {"optimizer.on_nonfinite",
       To(
           WordOf(kOnNonfiniteNames),
           [](Draft & d) -> auto& { return d.spec.optimizer.on_nonfinite; })},
      {"lr_schedule.kind", To(
                               WordOf(kLrKindNames), [](Draft & d) -> auto& {
                                 return d.spec.lr_schedule.kind;
                               })},
      {"lr_schedule.warmup_steps",
       To(
           Whole(0, kMaxSteps),
           [](Draft & d) -> auto& { return d.spec.lr_schedule.warmup_steps; })},
      {"lr_schedule.decay_steps",
       To(
           Whole(1, kMaxSteps),
           [](Draft & d) -> auto& { return d.spec.lr_schedule.decay_steps; })},
      {"lr_schedule.min_ratio", To(
                                    UpToOne(), [](Draft & d) -> auto& {
                                      return d.spec.lr_schedule.min_ratio;
                                    })},
      {"steps", ToOr(
                    "none", Whole(1, kMaxSteps),
                    [](Draft & d) -> auto& { return d.spec.steps; })},
      {"epochs", ToOr(
                     "none", Whole(1, kMaxSteps),
                     [](Draft & d) -> auto& { return d.spec.epochs; })},
      {"seed",
       To(
           Whole(0, kAnyMax), [](Draft & d) -> auto& { return d.spec.seed; })},
  };
}

// Filled through an EvaluateSpec that exists from here on.
EvaluateSpec& Evaluate(Draft& draft) {
  if (!draft.spec.evaluate.has_value()) draft.spec.evaluate.emplace();
  return *draft.spec.evaluate;
}

std::vector<KeyRow> OperationRows() {
  return {
      {"evaluate", ReadNone},
      {"evaluate.every", To(
                             Whole(1, kMaxSteps), [](Draft & d) -> auto& {
                               return Evaluate(d).every;
                             })},
      {"evaluate.batches", To(
                               Whole(1, kMaxSteps), [](Draft & d) -> auto& {
                                 return Evaluate(d).batches;
                               })},
      {"checkpoint.every", To(
                               Whole(1, kMaxSteps), [](Draft & d) -> auto& {
                                 return d.spec.checkpoint.every;
                               })},
      {"checkpoint.keep", To(
                              Whole(1, kMaxSteps), [](Draft & d) -> auto& {
                                return d.spec.checkpoint.keep;
                              })},
      {"checkpoint.dir", To(
                             Text("a folder"), [](Draft & d) -> auto& {
                               return d.spec.checkpoint.dir;
                             })},
      {"resume_from", ToOr(
                          "none", Text("a checkpoint"), [](Draft & d) -> auto& {
                            return d.spec.resume_from;
                          })},
      {"recovery.mode", To(
                            WordOf(kRecoveryModeNames), [](Draft & d) -> auto& {
                              return d.spec.recovery.mode;
                            })},
      {"recovery.every_steps", To(
                                   Whole(1, kMaxSteps), [](Draft & d) -> auto& {
                                     return d.spec.recovery.every_steps;
                                   })},
      {"recovery.max_restarts",
       To(
           Whole(0, kMaxSteps),
           [](Draft & d) -> auto& { return d.spec.recovery.max_restarts; })},
      {"recovery.window_steps",
       To(
           Whole(1, kMaxSteps),
           [](Draft & d) -> auto& { return d.spec.recovery.window_steps; })},
      {"recovery.shrink",
       To(
           Flag(), [](Draft & d) -> auto& { return d.spec.recovery.shrink; })},
      {"recovery.allow_mixed", To(
                                   Flag(), [](Draft & d) -> auto& {
                                     return d.spec.recovery.allow_mixed;
                                   })},
      {"scheduling.pool",
       To(
           Text("the name of a pool"),
           [](Draft & d) -> auto& { return d.spec.scheduling.pool; })},
      {"scheduling.priority",
       To(
           Whole(-1000000, 1000000),
           [](Draft & d) -> auto& { return d.spec.scheduling.priority; })},
      {"scheduling.time_limit", ToOr(
                                    "none", Time(), [](Draft & d) -> auto& {
                                      return d.spec.scheduling.time_limit;
                                    })},
      {"scheduling.queue_timeout", ToOr(
                                       "none", Time(), [](Draft & d) -> auto& {
                                         return d.spec.scheduling.queue_timeout;
                                       })},
      {"device", To(
                     WordOf(kDeviceKindNames),
                     [](Draft & d) -> auto& { return d.spec.device; })},
      {"virtual.forward", To(
                              Time(), [](Draft & d) -> auto& {
                                return d.spec.virtual_times.forward;
                              })},
      {"virtual.backward_input",
       To(
           Time(), [](Draft & d) -> auto& {
             return d.spec.virtual_times.backward_input;
           })},
      {"virtual.backward_weight",
       To(
           Time(), [](Draft & d) -> auto& {
             return d.spec.virtual_times.backward_weight;
           })},
      {"virtual.transfer", To(
                               Time(), [](Draft & d) -> auto& {
                                 return d.spec.virtual_times.transfer;
                               })},
      {"threads_per_stage", ToOr(
                                "auto", Whole(1, 1024), [](Draft & d) -> auto& {
                                  return d.spec.threads_per_stage;
                                })},
      {"trackers.tensorboard", To(
                                   Flag(), [](Draft & d) -> auto& {
                                     return d.spec.trackers.tensorboard;
                                   })},
      {"trackers.csv",
       To(
           Flag(), [](Draft & d) -> auto& { return d.spec.trackers.csv; })},
  };
}

std::vector<KeyRow> MakeTable() {
  std::vector<KeyRow> table = {
      {"version",
       To(
           Whole(1, 1), [](Draft & d) -> auto& { return d.spec.version; })},
      {"name",
       To(
           Text("a name"), [](Draft & d) -> auto& { return d.spec.name; })},
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
