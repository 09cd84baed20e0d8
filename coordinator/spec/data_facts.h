// The part of a job's checks that needs a look at the training data: what the
// file really is and how long its lines are. Whoever reads data (the
// stages that CheckInputs asks, or who sees the file) gathers the facts; these
// pure functions complete the JobSpec with them.
#ifndef PENSTOCK_COORDINATOR_SPEC_DATA_FACTS_H_
#define PENSTOCK_COORDINATOR_SPEC_DATA_FACTS_H_

#include <cstdint>
#include <vector>

#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

struct DataFacts {
  // JSON lines: tokens in the first line's input_ids; 0: lines of text.
  int64_t first_line_tokens = 0;
};

// Sets data.sequence_length and model.vocab where the job file left them to the
// data (token lines: the first line's count − 1; text lines:
// DefaultSequenceLength and the byte tokenizer's 256) and returns every rule
// that the data break, with key paths. `spec` is changed only where its fields
// were undecided.
std::vector<Violation> ApplyDataFacts(const DataFacts& facts, JobSpec& spec);

// `epochs` as steps, once the number of training sequences is known: sets
// steps = ⌊epochs·n / batch.global⌋, clears epochs, and completes lr_schedule.
// A job that has `steps` stays as it is.
std::vector<Violation> ResolveSteps(int64_t training_sequences, JobSpec& spec);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_DATA_FACTS_H_
