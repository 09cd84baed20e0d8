#include "coordinator/spec/not_built_yet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/rules.h"

namespace penstock::coordinator::spec {
namespace {

struct Row {
  const char* key_path;
  bool (*asked_for)(const JobSpec&);
  const char* feature;
};

constexpr Row kNotBuiltYet[] = {
    {"data.sources", [](const JobSpec& s) { return !s.data.sources.empty(); },
     "mixtures of sources; give data.train"},
    {"data.format",
     [](const JobSpec& s) { return s.data.format == DataFormat::kLlmc; },
     "llm.c token files"},
    {"data.format",
     [](const JobSpec& s) { return s.data.format == DataFormat::kMegatron; },
     "Megatron token files"},
    {"data.tokenizer",
     [](const JobSpec& s) { return s.data.tokenizer.has_value(); },
     "tokenizers other than byte"},
    {"batch.micro_batch",
     [](const JobSpec& s) { return !s.batch.micro_batch.has_value(); },
     "the search for a micro-batch size; give a number"},
    {"pipeline.stages",
     [](const JobSpec& s) { return !s.pipeline.stages.has_value(); },
     "the search for a number of stages; give a number"},
    {"pipeline.recompute",
     [](const JobSpec& s) {
       return s.pipeline.recompute == Recompute::kSelective;
     },
     "selective recompute; there are none and full"},
    {"pipeline.rebalance",
     [](const JobSpec& s) { return s.pipeline.rebalance; }, "rebalancing"},
    {"pipeline.mode",
     [](const JobSpec& s) {
       return s.pipeline.mode == PipelineMode::kAsync2bw;
     },
     "asynchronous pipelines; there is sync"},
    {"replicas", [](const JobSpec& s) { return s.replicas != 1; },
     "more than one replica"},
    {"precision",
     [](const JobSpec& s) { return s.precision == Precision::kBf16; },
     "bf16; there is f32"},
    {"resume_from", [](const JobSpec& s) { return s.resume_from.has_value(); },
     "resuming from a checkpoint"},
    {"scheduling.pool",
     [](const JobSpec& s) { return s.scheduling.pool != "default"; },
     "pools other than default"},
    {"scheduling.priority",
     [](const JobSpec& s) { return s.scheduling.priority != 0; },
     "priorities of jobs"},
    {"scheduling.time_limit",
     [](const JobSpec& s) { return s.scheduling.time_limit.has_value(); },
     "time limits of jobs"},
    {"scheduling.queue_timeout",
     [](const JobSpec& s) { return s.scheduling.queue_timeout.has_value(); },
     "time-outs in the queue"},
    {"device", [](const JobSpec& s) { return s.device == DeviceKind::kCuda; },
     "the cuda device; there are reference, cpu and virtual"},
};

// Keys that are read without a word to the rest of the coordinator.
struct InertKey {
  const char* key_path;
  const char* note;  // What follows "KEY: ".
  // Also said of a job without the key: its default would have an effect.
  bool always = false;
};

constexpr InertKey kWithoutEffect[] = {
    {"checkpoint", "accepted, no effect yet (checkpoints are not built yet)"},
    {"recovery", "none (recovery is not built yet)", /*always=*/true},
    {"trackers", "accepted, no effect yet (trackers are not built yet)"},
};

}  // namespace

void CheckBuilt(const JobSpec& spec, std::vector<Violation>& violations) {
  std::vector<Violation> found;
  for (const Row& row : kNotBuiltYet) {
    if (row.asked_for(spec) && IsSound(row.key_path, violations)) {
      found.push_back(
          {row.key_path, absl::StrCat("not built yet: ", row.feature)});
    }
  }
  violations.insert(violations.end(), found.begin(), found.end());
}

void NoteWithoutEffect(const Draft& draft, std::vector<std::string>& notes) {
  for (const InertKey& key : kWithoutEffect) {
    if (key.always || draft.Given(key.key_path)) {
      notes.push_back(absl::StrCat(key.key_path, ": ", key.note));
    }
  }
}

}  // namespace penstock::coordinator::spec
