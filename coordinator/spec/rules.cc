#include "coordinator/spec/rules.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/ids/names.h"
#include "common/text/quote.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/partition_rules.h"
#include "coordinator/spec/enum_names.h"
#include "coordinator/spec/limits.h"
#include "coordinator/spec/scalars.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {
namespace {

bool IsName(absl::string_view name) {
  return common::ids::CheckJobName(name).ok();
}

// "dir/shakespeare.yaml" -> "shakespeare".
absl::string_view Stem(absl::string_view file) {
  file = file.substr(file.rfind('/') + 1);  // npos + 1 = 0: no folder
  return file.substr(0, file.rfind('.'));
}

// A name near `text`, for a hint; "" where there is none.
std::string SuggestName(absl::string_view text) {
  std::string name =
      absl::AsciiStrToLower(text.substr(0, common::ids::kMaxJobNameBytes));
  for (char& c : name) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c)) c = '-';
  }
  return IsName(name) ? name : "";
}

DataFormat FormatOf(absl::string_view path) {
  if (absl::EndsWith(path, ".jsonl")) return DataFormat::kJsonl;
  if (absl::EndsWith(path, ".bin")) return DataFormat::kNanogpt;
  return DataFormat::kText;
}

// v of a schedule that leaves no choice; nullopt: any number will do.
std::optional<int64_t> FixedChunks(ScheduleKind kind) {
  const schedule::NamedSchedule* const row = schedule::FindSchedule(kind);
  return row == nullptr ? std::nullopt : row->fixed_chunks;
}

// v where the job file says auto; nullopt: the planner's choice, or the order's
// of a file.
std::optional<int64_t> DefaultChunks(ScheduleKind kind) {
  const schedule::NamedSchedule* const row = schedule::FindSchedule(kind);
  return row == nullptr ? std::nullopt : row->default_chunks;
}

// One job being finished; lives for one call.
class JobRules {
 public:
  JobRules(Draft& draft, std::vector<Violation>& violations)
      : draft_(draft), spec_(draft.spec), violations_(violations) {}

  void Name(absl::string_view file) {
    if (!Sound("name")) return;
    if (draft_.Given("name")) {
      if (!IsName(spec_.name)) {
        Refuse("name",
               absl::StrCat(common::text::Quoted(spec_.name),
                            " does not match ", common::ids::kJobNamePattern));
      }
      return;
    }
    spec_.name = std::string(Stem(file));
    if (IsName(spec_.name)) return;
    const std::string near = SuggestName(spec_.name);
    Refuse("name",
           absl::StrCat("the file's stem ", common::text::Quoted(spec_.name),
                        " does not match ", common::ids::kJobNamePattern,
                        "; give a name, such as name: ",
                        near.empty() ? "my-job" : near));
  }

  void Data() {
    DataSpec& data = spec_.data;
    const bool has_train = draft_.Given("data.train");
    const bool has_sources = draft_.Given("data.sources");
    if (!Sound("data.train") || !Sound("data.sources")) return;
    if (has_train && has_sources) {
      Refuse("data.sources", "data.train is given too; keep one of the two");
      return;
    }
    if (!has_train && !has_sources) {
      Refuse("data.train", "is required: a file, folder or prefix");
      return;
    }
    if (!Sound("data.format")) return;
    data.format_by_name = !draft_.format.has_value();
    data.format = draft_.format.value_or(
        FormatOf(has_train ? data.train : data.sources.front().path));
    ValidationFormat();
    Vocabulary();
    SequenceLength();
  }

  void Batch() {
    BatchSpec& batch = spec_.batch;
    if (!draft_.Given("batch.global") && Sound("batch.global")) {
      Refuse("batch.global", "is required: sequences a step");
    }
    if (!Sound("batch.global") || !Sound("batch.micro_batch") ||
        !Sound("replicas") || !batch.micro_batch.has_value()) {
      return;
    }
    const int64_t unit = *batch.micro_batch * spec_.replicas;
    batch.micro_batches = batch.global / unit;
    if (batch.global % unit != 0) {
      Refuse("batch.global",
             absl::StrCat(batch.global, " sequences a step are no multiple of ",
                          "micro_batch * replicas = ", *batch.micro_batch,
                          " * ", spec_.replicas, " = ", unit));
    }
  }

  void Pipeline() {
    PipelineSpec& pipeline = spec_.pipeline;
    if (!Sound("pipeline.schedule") || !Sound("pipeline.chunks")) return;
    pipeline.chunks = DefaultChunks(pipeline.schedule);
    if (draft_.chunks.has_value()) {
      const std::optional<int64_t> fixed = FixedChunks(pipeline.schedule);
      if (fixed.has_value() && *fixed != *draft_.chunks) {
        Refuse("pipeline.chunks",
               absl::StrCat("schedule ", ScheduleName(pipeline), " runs ",
                            *fixed, *fixed == 1 ? " chunk" : " chunks",
                            " a rank, not ", *draft_.chunks, "; leave it out"));
        return;
      }
      pipeline.chunks = draft_.chunks;
    }
    if (!LayersKnown() || !Sound("pipeline.stages") ||
        !pipeline.stages.has_value() || !pipeline.chunks.has_value()) {
      return;
    }
    const int64_t virtual_stages = *pipeline.stages * *pipeline.chunks;
    const int64_t layers = spec_.model.layers;
    if (const std::optional<std::string> fault =
            schedule::StagesFault(virtual_stages, layers)) {
      Refuse("pipeline.stages",
             absl::StrCat(*pipeline.stages, " stages * ", *pipeline.chunks,
                          *pipeline.chunks == 1 ? " chunk" : " chunks", " = ",
                          *fault));
    } else if (pipeline.partition.has_value() && Sound("pipeline.partition")) {
      Partition(*pipeline.partition, virtual_stages);
    }
  }

  void Training() {
    if (Sound("steps") && Sound("epochs")) {
      if (!spec_.steps.has_value() && !spec_.epochs.has_value()) {
        Refuse("steps", "is required (or epochs)");
      } else if (spec_.steps.has_value() && spec_.epochs.has_value()) {
        Refuse("epochs",
               "steps is given too; keep one of the two (the other "
               "may be none)");
      } else if (!draft_.Given("lr_schedule.decay_steps")) {
        spec_.lr_schedule.decay_steps = spec_.steps;
      }
    }
    if (Sound("optimizer.kind") && Sound("optimizer.momentum") &&
        spec_.optimizer.kind == OptimizerKind::kAdamW &&
        spec_.optimizer.momentum != 0) {
      Refuse("optimizer.momentum",
             "adamw has no momentum (its betas are); leave it out or write "
             "kind: sgd");
    }
    if (spec_.evaluate.has_value() && Sound("evaluate") &&
        Sound("data.validation") && !spec_.data.validation.has_value()) {
      Refuse("evaluate",
             "there is no validation data; give data.validation, such as 5%");
    }
  }

  void VirtualDevice() {
    const VirtualSpec& times = spec_.virtual_times;
    if (!Sound("device") || !Sound("virtual")) return;
    // The defaults say nothing: every resolved job has them.
    if (spec_.device != DeviceKind::kVirtual && times != VirtualSpec{}) {
      Refuse("virtual",
             absl::StrCat("these are times of the virtual device, and the "
                          "device is ",
                          NameOf(kDeviceKindNames, spec_.device),
                          "; leave them out or write device: virtual"));
      return;
    }
    // A transfer may be given beside a profile, which has none.
    const VirtualSpec usual;
    for (const auto& [key, time, default_time] :
         {std::tuple("virtual.forward", times.forward, usual.forward),
          std::tuple("virtual.backward_input", times.backward_input,
                     usual.backward_input),
          std::tuple("virtual.backward_weight", times.backward_weight,
                     usual.backward_weight),
          std::tuple("virtual.transfer", times.transfer, times.transfer)}) {
      if (time > kMaxModelledTime) {
        Refuse(key, absl::StrCat("at most ", FormatTime(kMaxModelledTime),
                                 " can be modelled"));
      } else if (times.profile.has_value() && time != default_time) {
        Refuse(key,
               "virtual.profile is given too, which has the times of each "
               "stage; keep one of the two");
      }
    }
  }

 private:
  bool Sound(absl::string_view key) const { return IsSound(key, violations_); }

  void Refuse(absl::string_view key, std::string message) {
    violations_.push_back({std::string(key), std::move(message)});
  }

  bool LayersKnown() const {
    return spec_.model.layers > 0 && Sound("model.layers") &&
           Sound("model.from");
  }

  // Files that were read in the training data's format, whatever they hold,
  // would be validation text of brackets and quotes.
  void ValidationFormat() {
    const DataSpec& data = spec_.data;
    if (!data.format_by_name || !data.validation.has_value() ||
        data.validation->path.empty()) {
      return;
    }
    const DataFormat own = FormatOf(data.validation->path);
    if (own == data.format) return;
    Refuse("data.validation",
           absl::StrCat("is ", NameOf(kDataFormatNames, own),
                        " by its name, and the training data are ",
                        NameOf(kDataFormatNames, data.format),
                        "; give data of one format, or say with data.format "
                        "what both are"));
  }

  void Vocabulary() {
    ModelSpec& model = spec_.model;
    if (!Sound("model.vocab") || !Sound("model.from")) return;
    const bool bytes = spec_.data.format == DataFormat::kText &&
                       !spec_.data.tokenizer.has_value();
    if (bytes && model.vocab == 0 && model.from.empty()) {
      model.vocab = kByteVocab;
    }
    if (bytes && model.vocab < kByteVocab) {
      Refuse(model.from.empty() ? "model.vocab" : "model.from",
             ByteVocabMessage(model.vocab));
    }
    const bool ids = spec_.data.format != DataFormat::kText &&
                     spec_.data.format != DataFormat::kJsonl;
    if (ids && model.vocab == 0 && model.from.empty()) {
      Refuse("model.vocab", kVocabIsRequired);
    }
  }

  void SequenceLength() {
    DataSpec& data = spec_.data;
    if (!Sound("data.sequence_length") || !Sound("model.context") ||
        !Sound("model.from") || spec_.model.context == 0) {
      return;
    }
    // Lines of tokens decide it themselves: ApplyDataFacts.
    if (!data.sequence_length.has_value()) {
      if (data.format != DataFormat::kJsonl) {
        data.sequence_length = DefaultSequenceLength(spec_.model);
      }
      return;
    }
    if (*data.sequence_length > spec_.model.context) {
      Refuse(
          "data.sequence_length",
          absl::StrCat(
              *data.sequence_length,
              " tokens are more than the model's longest "
              "sequence, ",
              spec_.model.context, " (",
              spec_.model.from.empty() ? "model.context" : "model.from", ")"));
    }
  }

  void Partition(const std::vector<int64_t>& blocks, int64_t virtual_stages) {
    for (schedule::PartitionFault& fault : schedule::PartitionFaults(
             blocks, virtual_stages, spec_.model.layers)) {
      Refuse(fault.item.has_value()
                 ? ItemPath("pipeline.partition", *fault.item)
                 : "pipeline.partition",
             std::move(fault.message));
    }
  }

  Draft& draft_;
  JobSpec& spec_;
  std::vector<Violation>& violations_;
};

}  // namespace

bool IsSound(absl::string_view key_path,
             const std::vector<Violation>& violations) {
  for (const Violation& violation : violations) {
    const absl::string_view bad = violation.key_path;
    const absl::string_view shorter =
        bad.size() < key_path.size() ? bad : key_path;
    const absl::string_view longer =
        bad.size() < key_path.size() ? key_path : bad;
    if (!absl::StartsWith(longer, shorter)) continue;
    // The same key, one below it, or a section around it.
    if (shorter.empty() || longer.size() == shorter.size() ||
        longer[shorter.size()] == '.' || longer[shorter.size()] == '[') {
      return false;
    }
  }
  return true;
}

void FinishJob(absl::string_view file, Draft& draft,
               std::vector<Violation>& violations) {
  JobRules rules(draft, violations);
  rules.Name(file);
  rules.Data();
  rules.Batch();
  rules.Pipeline();
  rules.Training();
  rules.VirtualDevice();
}

}  // namespace penstock::coordinator::spec
