// The numbers that the job file's rules share: the largest values accepted and
// the defaults that more than one rule needs. A product of two sizes stays
// within 64 bits; one with kMaxSteps does not.
#ifndef PENSTOCK_COORDINATOR_SPEC_LIMITS_H_
#define PENSTOCK_COORDINATOR_SPEC_LIMITS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

// Of the document itself.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;
inline constexpr int kMaxDepth = 32;
inline constexpr int kMaxValues = 65536;  // of the file and all of --set
// Of --set, with the flags that stand for it.
inline constexpr size_t kMaxOverrides = 1000;
inline constexpr size_t kMaxOverrideBytes = size_t{1} << 20;

// Of values.
inline constexpr int64_t kMaxLayers = 21845;  // dropout sites have 16 bits
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // also heads, head_dim
inline constexpr int64_t kMaxFfnWidth = int64_t{1} << 24;
inline constexpr int64_t kMaxContext = int64_t{1} << 24;  // tokens
inline constexpr int64_t kMaxVocab = int64_t{1} << 24;
inline constexpr int64_t kMaxGlobalBatch = int64_t{1} << 24;  // sequences
inline constexpr int64_t kMaxStages = 4096;                   // also replicas
inline constexpr int64_t kMaxChunks = 256;
// Of the virtual device: of each time; all of a step still fit nanoseconds.
inline constexpr absl::Duration kMaxModelledTime = absl::Hours(24);
inline constexpr int64_t kMaxSteps = 1'000'000'000'000;  // also epochs

inline constexpr int64_t kByteVocab = 256;  // ids of the byte tokenizer
// With model.from the default sequence is no longer than this many tokens.
inline constexpr int64_t kMaxDefaultSequence = 1024;

// data.sequence_length where neither the job file nor token lines decide.
inline int64_t DefaultSequenceLength(const ModelSpec& model) {
  return model.from.empty() ? model.context
                            : std::min(model.context, kMaxDefaultSequence);
}

// Of model.vocab.
inline constexpr char kVocabIsRequired[] =
    "is required where data are token ids and there is no model.from; give "
    "the tokenizer's size";

inline std::string ByteVocabMessage(int64_t vocab) {
  return absl::StrCat("the vocabulary has ", vocab,
                      " ids, too few for the data: the byte tokenizer has ",
                      kByteVocab);
}

// ffn_width where the job file does not give it: 4·width, or llama's rule.
inline int64_t DefaultFfnWidth(ModelFamily family, int64_t width) {
  if (family == ModelFamily::kGpt2) return 4 * width;
  return (8 * width / 3 + 255) / 256 * 256;
}

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_LIMITS_H_
