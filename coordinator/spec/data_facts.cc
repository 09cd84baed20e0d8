#include "coordinator/spec/data_facts.h"

#include "absl/strings/str_cat.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::spec {
namespace {

void ApplyTokenLines(int64_t tokens, JobSpec& spec,
                     std::vector<Violation>& violations) {
  const int64_t length = tokens - 1;
  if (length < 1) {
    violations.push_back(
        {"data.train",
         absl::StrCat("the first line has ", tokens,
                      " token; a line of T tokens predicts T-1, so at least 2 "
                      "are needed")});
  } else if (!spec.data.sequence_length.has_value()) {
    spec.data.sequence_length = length;
    if (length > spec.model.context) {
      violations.push_back(
          {"data.train", absl::StrCat("its lines predict ", length,
                                      " tokens, more than model.context, ",
                                      spec.model.context)});
    }
  } else if (*spec.data.sequence_length != length) {
    violations.push_back(
        {"data.sequence_length",
         absl::StrCat(*spec.data.sequence_length,
                      " is not what the data have: lines of ", tokens,
                      " tokens predict ", length,
                      "; leave the key out or give ", length)});
  }
  if (spec.model.vocab == 0) {
    violations.push_back({"model.vocab", kVocabIsRequired});
  }
}

void ApplyTextLines(JobSpec& spec, std::vector<Violation>& violations) {
  if (!spec.data.sequence_length.has_value()) {
    spec.data.sequence_length = DefaultSequenceLength(spec.model);
  }
  if (spec.data.tokenizer.has_value()) return;
  if (spec.model.vocab == 0) spec.model.vocab = kByteVocab;
  if (spec.model.vocab < kByteVocab) {
    violations.push_back(
        {spec.model.from.empty() ? "model.vocab" : "model.from",
         ByteVocabMessage(spec.model.vocab)});
  }
}

}  // namespace

std::vector<Violation> ApplyDataFacts(const DataFacts& facts, JobSpec& spec) {
  std::vector<Violation> violations;
  if (spec.data.format != DataFormat::kJsonl) return violations;
  if (facts.first_line_tokens > 0) {
    ApplyTokenLines(facts.first_line_tokens, spec, violations);
  } else {
    ApplyTextLines(spec, violations);
  }
  return violations;
}

std::vector<Violation> ResolveSteps(int64_t training_sequences, JobSpec& spec) {
  if (!spec.epochs.has_value()) return {};
  // 128 bits: epochs may be up to kMaxSteps.
  const __int128 steps = static_cast<__int128>(*spec.epochs) *
                         training_sequences / spec.batch.global;
  if (steps < 1 || steps > kMaxSteps) {
    return {{"epochs",
             absl::StrCat(*spec.epochs, " passes over ", training_sequences,
                          " training sequences are ",
                          steps < 1 ? "less than one step" : "too many steps",
                          " of batch.global = ", spec.batch.global)}};
  }
  spec.steps = static_cast<int64_t>(steps);
  spec.epochs = std::nullopt;
  if (!spec.lr_schedule.decay_steps.has_value()) {
    spec.lr_schedule.decay_steps = spec.steps;
  }
  return {};
}

}  // namespace penstock::coordinator::spec
