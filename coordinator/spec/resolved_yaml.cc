#include "coordinator/spec/resolved_yaml.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::spec {
namespace {

// Double quotes, so that no text is taken for a number, a word or a comment.
std::string Text(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if ((c >= 0 && c < 0x20) || c == 0x7f) {
      absl::StrAppend(&out, "\\x", absl::Hex(c, absl::kZeroPad2));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}
std::string Value(bool value) { return value ? "true" : "false"; }
std::string Value(int64_t value) { return absl::StrCat(value); }
std::string Value(double value) { return FormatNumber(value); }
std::string Value(absl::Duration value) { return FormatTime(value); }

template <typename T>
std::string OrWord(const std::optional<T>& value, absl::string_view word) {
  return value.has_value() ? Value(*value) : std::string(word);
}

// Lines of "key: value", two spaces a level.
class Writer {
 public:
  void Open(absl::string_view section) {
    Line(absl::StrCat(section, ":"));
    ++level_;
  }
  void Close() { --level_; }
  void Key(absl::string_view key, absl::string_view value) {
    Line(absl::StrCat(key, ": ", value));
  }
  void Line(absl::string_view line) {
    absl::StrAppend(&text_, std::string(2 * level_, ' '), line, "\n");
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  int level_ = 0;
};

// One item per key that the model has; as comments where config.json says it.
void WriteArchitecture(const ModelSpec& m, Writer& out) {
  const bool llama = m.family == ModelFamily::kLlama;
  const absl::string_view mark = m.from.empty() ? "" : "# ";
  const auto key = [&](absl::string_view name, absl::string_view value) {
    out.Line(absl::StrCat(mark, name, ": ", value));
  };
  key("family", NameOf(kModelFamilyNames, m.family));
  key("layers", Value(m.layers));
  key("width", Value(m.width));
  key("heads", Value(m.heads));
  if (llama) {
    key("kv_heads", Value(m.kv_heads));
    key("head_dim", Value(m.head_dim));
  }
  key("ffn_width", Value(m.ffn_width));
  key("context", Value(m.context));
  if (m.vocab > 0) {
    key("vocab", Value(m.vocab));
  } else {
    out.Line("# vocab: the data's tokens decide");
  }
  key("tied_embeddings", Value(m.tied_embeddings));
  key("norm_eps", Value(m.norm_eps));
  key("init_std", Value(m.init_std));
  if (!llama) return;
  key("rope_theta", Value(m.rope_theta));
  const RopeScaling& rope = m.rope_scaling;
  std::string scaling =
      absl::StrCat("{rope_type: ", NameOf(kRopeScalingKindNames, rope.kind));
  if (rope.kind != RopeScalingKind::kNone) {
    absl::StrAppend(&scaling, ", factor: ", Value(rope.factor));
  }
  if (rope.kind == RopeScalingKind::kLlama3) {
    absl::StrAppend(
        &scaling, ", low_freq_factor: ", Value(rope.low_freq_factor),
        ", high_freq_factor: ", Value(rope.high_freq_factor),
        ", original_max_position_embeddings: ", Value(rope.original_context));
  }
  key("rope_scaling", absl::StrCat(scaling, "}"));
}

void WriteModel(const ModelSpec& m, Writer& out) {
  out.Open("model");
  if (!m.from.empty()) out.Key("from", Text(m.from));
  out.Key("dropout", Value(m.dropout));
  WriteArchitecture(m, out);
  out.Close();
}

void WriteData(const DataSpec& d, Writer& out) {
  out.Open("data");
  if (!d.train.empty()) out.Key("train", Text(d.train));
  if (!d.sources.empty()) {
    out.Key("sources",
            absl::StrCat("[",
                         absl::StrJoin(d.sources, ", ",
                                       [](std::string* text, const auto& s) {
                                         absl::StrAppend(
                                             text, "{path: ", Text(s.path),
                                             ", weight: ", Value(s.weight),
                                             "}");
                                       }),
                         "]"));
  }
  out.Key("format", NameOf(kDataFormatNames, d.format));
  out.Key("field", Text(d.field));
  out.Key("order", NameOf(kDataOrderNames, d.order));
  if (d.sequence_length.has_value()) {
    out.Key("sequence_length", Value(*d.sequence_length));
  } else {
    out.Line("# sequence_length: the data's first line decides");
  }
  out.Key("validation", !d.validation.has_value() ? "none"
                        : d.validation->share_millionths > 0
                            ? FormatShare(d.validation->share_millionths)
                            : Text(d.validation->path));
  out.Key("tokenizer", d.tokenizer.has_value() ? Text(*d.tokenizer) : "byte");
  out.Close();
}

void WritePipeline(const JobSpec& s, Writer& out) {
  const PipelineSpec& p = s.pipeline;
  out.Open("batch");
  out.Key("global", Value(s.batch.global));
  out.Key("micro_batch", OrWord(s.batch.micro_batch, "auto"));
  out.Close();
  out.Open("pipeline");
  out.Key("stages", OrWord(p.stages, "auto"));
  out.Key("schedule", p.schedule == ScheduleKind::kFile ? Text(ScheduleName(p))
                                                        : ScheduleName(p));
  out.Key("chunks", OrWord(p.chunks, "auto"));
  out.Key("recompute", NameOf(kRecomputeNames, p.recompute));
  out.Key("partition",
          p.partition.has_value()
              ? absl::StrCat("[", absl::StrJoin(*p.partition, ", "), "]")
              : "auto");
  out.Key("memory_limit", p.memory_limit.has_value()
                              ? FormatByteSize(*p.memory_limit)
                              : "none");
  out.Key("rebalance", Value(p.rebalance));
  out.Key("mode", NameOf(kPipelineModeNames, p.mode));
  out.Close();
  out.Key("replicas", Value(s.replicas));
  out.Key("precision", NameOf(kPrecisionNames, s.precision));
}

void WriteTraining(const JobSpec& s, Writer& out) {
  const OptimizerSpec& o = s.optimizer;
  out.Open("optimizer");
  out.Key("kind", NameOf(kOptimizerKindNames, o.kind));
  out.Key("lr", Value(o.lr));
  out.Key("betas",
          absl::StrCat("[", Value(o.beta1), ", ", Value(o.beta2), "]"));
  out.Key("eps", Value(o.eps));
  out.Key("weight_decay", Value(o.weight_decay));
  out.Key("clip_norm", OrWord(o.clip_norm, "none"));
  out.Key("momentum", Value(o.momentum));
  out.Key("on_nonfinite", NameOf(kOnNonfiniteNames, o.on_nonfinite));
  out.Close();
  const LrSchedule& lr = s.lr_schedule;
  out.Open("lr_schedule");
  out.Key("kind", NameOf(kLrKindNames, lr.kind));
  out.Key("warmup_steps", Value(lr.warmup_steps));
  if (lr.decay_steps.has_value()) {
    out.Key("decay_steps", Value(*lr.decay_steps));
  } else {
    out.Line("# decay_steps: the number of steps, which the data decide");
  }
  out.Key("min_ratio", Value(lr.min_ratio));
  out.Close();
  out.Key("steps", OrWord(s.steps, "none"));
  out.Key("epochs", OrWord(s.epochs, "none"));
  out.Key("seed", Value(s.seed));
}

void WriteOperation(const JobSpec& s, Writer& out) {
  if (s.evaluate.has_value()) {
    out.Open("evaluate");
    out.Key("every", Value(s.evaluate->every));
    out.Key("batches", Value(s.evaluate->batches));
    out.Close();
  } else {
    out.Key("evaluate", "none");
  }
  out.Open("checkpoint");
  out.Key("every", Value(s.checkpoint.every));
  out.Key("keep", Value(s.checkpoint.keep));
  if (s.checkpoint.dir.empty()) {
    out.Line("# dir: the run directory's checkpoints");
  } else {
    out.Key("dir", Text(s.checkpoint.dir));
  }
  out.Close();
  out.Key("resume_from",
          s.resume_from.has_value() ? Text(*s.resume_from) : "none");
  out.Open("recovery");
  out.Key("mode", NameOf(kRecoveryModeNames, s.recovery.mode));
  out.Key("every_steps", Value(s.recovery.every_steps));
  out.Key("max_restarts", Value(s.recovery.max_restarts));
  out.Key("window_steps", Value(s.recovery.window_steps));
  out.Key("shrink", Value(s.recovery.shrink));
  out.Key("allow_mixed", Value(s.recovery.allow_mixed));
  out.Close();
  out.Open("scheduling");
  out.Key("pool", Text(s.scheduling.pool));
  out.Key("priority", Value(s.scheduling.priority));
  out.Key("time_limit", OrWord(s.scheduling.time_limit, "none"));
  out.Key("queue_timeout", OrWord(s.scheduling.queue_timeout, "none"));
  out.Close();
  out.Key("device", NameOf(kDeviceKindNames, s.device));
  out.Open("virtual");
  out.Key("forward", Value(s.virtual_times.forward));
  out.Key("backward_input", Value(s.virtual_times.backward_input));
  out.Key("backward_weight", Value(s.virtual_times.backward_weight));
  out.Key("transfer", Value(s.virtual_times.transfer));
  out.Key("bandwidth", s.virtual_times.bandwidth.has_value()
                           ? FormatByteSize(*s.virtual_times.bandwidth)
                           : "none");
  out.Key("profile", s.virtual_times.profile.has_value()
                         ? Text(*s.virtual_times.profile)
                         : "none");
  out.Close();
  out.Key("threads_per_stage", OrWord(s.threads_per_stage, "auto"));
  out.Open("trackers");
  out.Key("tensorboard", Value(s.trackers.tensorboard));
  out.Key("csv", Value(s.trackers.csv));
  out.Close();
}

}  // namespace

std::string ToResolvedYaml(const JobSpec& spec) {
  Writer out;
  out.Key("version", Value(spec.version));
  out.Key("name", Text(spec.name));
  WriteModel(spec.model, out);
  WriteData(spec.data, out);
  WritePipeline(spec, out);
  WriteTraining(spec, out);
  WriteOperation(spec, out);
  return out.Take();
}

}  // namespace penstock::coordinator::spec
