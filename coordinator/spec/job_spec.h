// What a job is, checked: the job file (YAML) after parsing, with every default
// filled in. ParseJob (job_parser.h) is the only producer; the planner's and
// dispatcher's inputs are made from these values, and resolved_yaml.h writes
// them back as the run directory's job.yaml.
//
// Plain values, compared with ==. Where the job file says `none` or `auto` and
// the value is not decided by the spec alone, the field is a std::optional and
// its comment says what nullopt means. Paths are as written in the job file:
// relative to it, or ROOT:path for a submitted job; nobody here opens them.
#ifndef PENSTOCK_COORDINATOR_SPEC_JOB_SPEC_H_
#define PENSTOCK_COORDINATOR_SPEC_JOB_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/schedule/named_schedules.h"

namespace penstock::coordinator::spec {

enum class ModelFamily { kGpt2, kLlama };

// How rotary positions are stretched beyond the trained length; the formulas
// are those of config.json's rope_type values of the same names.
enum class RopeScalingKind { kNone, kLinear, kLlama3 };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  // linear and llama3: positions (low frequencies) are divided by this; >= 1.
  double factor = 1.0;
  // llama3 only: wavelengths longer than original_context / low_freq_factor
  // are scaled, shorter than original_context / high_freq_factor are not.
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_context = 8192;  // tokens

  bool operator==(const RopeScaling&) const = default;
};

// The architecture. Complete for both families, whether it was written in the
// job file or read from a Hugging Face config.json.
struct ModelSpec {
  // A Hugging Face folder or a Penstock checkpoint whose weights are loaded;
  // empty: weights are initialised from `init_std` and the seed.
  std::string from;
  ModelFamily family = ModelFamily::kGpt2;
  int64_t layers = 0;    // blocks, without embedding and head
  int64_t width = 0;     // elements of the residual stream
  int64_t heads = 0;     // query heads
  int64_t kv_heads = 0;  // key/value heads, divides heads; = heads for gpt2
  int64_t head_dim = 0;  // elements a head; not always width / heads
  // Inner elements of the MLP. Default 4·width (gpt2); llama: ⌊8·width/3⌋
  // rounded up to a multiple of 256, as Meta's and Hugging Face's code does.
  int64_t ffn_width = 0;
  int64_t context = 0;  // longest sequence in tokens; gpt2: learned positions
  // Token ids are 0 .. vocab-1. 0: the job file does not say and the data are
  // JSON lines; ApplyDataFacts (data_facts.h) sets it, or refuses.
  int64_t vocab = 0;
  bool tied_embeddings = true;  // the head uses the embedding's matrix
  double dropout = 0.0;         // probability, [0, 1)
  double norm_eps = 1e-5;       // added to the variance in every norm
  double rope_theta = 10000.0;  // llama; unused by gpt2
  RopeScaling rope_scaling;     // llama; kNone for gpt2
  double init_std = 0.02;       // standard deviation of initial weights

  bool operator==(const ModelSpec&) const = default;
};

enum class DataFormat { kText, kJsonl, kNanogpt, kLlmc, kMegatron };
enum class DataOrder { kShuffled, kSequential };

struct DataSource {
  std::string path;
  double weight = 1.0;  // relative share of the samples, > 0

  bool operator==(const DataSource&) const = default;
};

// Held-out data: exactly one of the two is set.
struct ValidationSpec {
  // Share of the windows or lines, in millionths so that ⌊share·n⌋ is exact:
  // the last ⌊share_millionths·n / 10^6⌋ of n; 0: `path` is given.
  int64_t share_millionths = 0;
  std::string path;

  bool operator==(const ValidationSpec&) const = default;
};

struct DataSpec {
  std::string train;                // file, folder or prefix; "" with `sources`
  std::vector<DataSource> sources;  // empty with `train`
  // Of training and validation data. `auto` is resolved by the name; a `.bin`
  // that turns out to be llm.c's by its magic is refused by the stages that
  // read it.
  DataFormat format = DataFormat::kText;
  // It was `auto`: the stages refuse a folder that holds other formats too.
  bool format_by_name = false;
  std::string field = "text";  // jsonl: the text field of a line
  DataOrder order = DataOrder::kShuffled;
  // Tokens predicted a sequence. nullopt: not given, and JSON lines decide
  // (ApplyDataFacts sets it). Set for every other format.
  std::optional<int64_t> sequence_length;
  std::optional<ValidationSpec> validation;  // nullopt: none
  std::optional<std::string> tokenizer;      // a path; nullopt: byte

  bool operator==(const DataSpec&) const = default;
};

struct BatchSpec {
  int64_t global = 0;  // sequences a step, all replicas together
  // Bµ, sequences a micro-batch; nullopt: auto (the planner chooses).
  std::optional<int64_t> micro_batch = 1;
  // M, micro-batches a step on each replica = global / (micro_batch·replicas),
  // exact. Derived; 0 while micro_batch is auto.
  int64_t micro_batches = 0;

  bool operator==(const BatchSpec&) const = default;
};

using schedule::ScheduleKind;
enum class Recompute { kNone, kFull, kSelective };
enum class PipelineMode { kSync, kAsync2bw };

struct PipelineSpec {
  std::optional<int64_t> stages = 1;  // K, ranks; nullopt: auto
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::string schedule_file;  // of kFile: the path after `file:`
  // v, chunks a rank. `auto` is resolved by the schedule; nullopt only where
  // the schedule itself is auto, or a file, whose rows tell.
  std::optional<int64_t> chunks = 1;
  Recompute recompute = Recompute::kNone;
  // Blocks of each of the K·v virtual stages; nullopt: auto. Only the first
  // and the last may be 0.
  std::optional<std::vector<int64_t>> partition;
  std::optional<int64_t> memory_limit;  // bytes a stage; nullopt: the device's
  bool rebalance = false;
  PipelineMode mode = PipelineMode::kSync;

  bool operator==(const PipelineSpec&) const = default;
};

enum class Precision { kF32, kBf16 };
enum class OptimizerKind { kAdamW, kSgd };
enum class OnNonfinite { kFail, kSkip };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double lr = 1e-3;                       // peak learning rate, > 0
  double beta1 = 0.9;                     // adamw, [0, 1)
  double beta2 = 0.95;                    // adamw, [0, 1)
  double eps = 1e-8;                      // adamw, > 0
  double weight_decay = 0.1;              // decoupled, >= 0; matrices only
  std::optional<double> clip_norm = 1.0;  // global norm; nullopt: no clipping
  double momentum = 0.0;                  // sgd, [0, 1); 0 for adamw
  OnNonfinite on_nonfinite = OnNonfinite::kFail;

  bool operator==(const OptimizerSpec&) const = default;
};

enum class LrKind { kConstant, kCosine, kLinear };

// Learning rate of step t from 0: lr·(t+1)/warmup_steps while t < warmup_steps,
// then the curve over (t − warmup_steps) / max(1, decay_steps − warmup_steps),
// from lr down to min_ratio·lr.
struct LrSchedule {
  LrKind kind = LrKind::kConstant;
  int64_t warmup_steps = 0;
  // nullopt: the job's number of steps, not known yet because of `epochs`.
  std::optional<int64_t> decay_steps;
  double min_ratio = 0.0;  // [0, 1]

  bool operator==(const LrSchedule&) const = default;
};

struct EvaluateSpec {
  int64_t every = 100;  // steps; the last step is evaluated too
  int64_t batches = 8;  // the first batches·global validation sequences

  bool operator==(const EvaluateSpec&) const = default;
};

struct CheckpointSpec {
  int64_t every = 100;  // steps
  int64_t keep = 3;     // newest checkpoints that stay
  std::string dir;      // "": RUN_DIR/checkpoints or checkpoints:USER/ID/

  bool operator==(const CheckpointSpec&) const = default;
};

enum class RecoveryMode { kReplica, kCheckpoint, kNone };

struct RecoverySpec {
  RecoveryMode mode = RecoveryMode::kReplica;
  int64_t every_steps = 1;     // steps between replicas
  int64_t max_restarts = 3;    // unplanned recoveries within the window
  int64_t window_steps = 100;  // newly committed steps that clear the count
  bool shrink = false;         // go on with fewer stages where none is spare
  bool allow_mixed = false;    // go on with another numerics id

  bool operator==(const RecoverySpec&) const = default;
};

struct SchedulingSpec {
  std::string pool = "default";
  int64_t priority = 0;                         // higher runs first
  std::optional<absl::Duration> time_limit;     // nullopt: none
  std::optional<absl::Duration> queue_timeout;  // nullopt: none

  bool operator==(const SchedulingSpec&) const = default;
};

enum class DeviceKind { kAuto, kReference, kCpu, kCuda, kVirtual };

// Modelled times of the virtual device.
struct VirtualSpec {
  // Of a rank's whole share of layers; the defaults, and not used, where there
  // is a profile.
  absl::Duration forward = absl::Milliseconds(5);
  absl::Duration backward_input = absl::Milliseconds(5);
  absl::Duration backward_weight = absl::Milliseconds(5);
  absl::Duration transfer = absl::ZeroDuration();  // Each message, any size.
  // Bytes a second of each edge, besides; nullopt: none, any size at once.
  std::optional<int64_t> bandwidth;
  // A profile.json with the times of each virtual stage; nullopt: none.
  std::optional<std::string> profile;

  bool operator==(const VirtualSpec&) const = default;
};

struct Trackers {
  bool tensorboard = true;
  bool csv = false;

  bool operator==(const Trackers&) const = default;
};

struct JobSpec {
  int64_t version = 1;  // of the job file's format
  std::string name;     // common/ids/names.h, CheckJobName
  ModelSpec model;
  DataSpec data;
  BatchSpec batch;
  PipelineSpec pipeline;
  int64_t replicas = 1;  // R
  Precision precision = Precision::kF32;
  OptimizerSpec optimizer;
  LrSchedule lr_schedule;
  // Exactly one of the two is set. epochs: steps = ⌊epochs·n / batch.global⌋
  // for n training sequences, known once the data are read.
  std::optional<int64_t> steps;
  std::optional<int64_t> epochs;
  int64_t seed = 1;                      // >= 0
  std::optional<EvaluateSpec> evaluate;  // nullopt: none
  CheckpointSpec checkpoint;
  std::optional<std::string> resume_from;  // nullopt: none
  RecoverySpec recovery;
  SchedulingSpec scheduling;
  DeviceKind device = DeviceKind::kAuto;
  VirtualSpec virtual_times;                 // the job file's `virtual`
  std::optional<int64_t> threads_per_stage;  // nullopt: auto
  Trackers trackers;

  bool operator==(const JobSpec&) const = default;
};

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_JOB_SPEC_H_
