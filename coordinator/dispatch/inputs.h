// The answers to CheckInputs: what the readers of the data saw, and what
// follows from it for the job (docs/ARCHITECTURE.md, PLANNING). Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_INPUTS_H_
#define PENSTOCK_COORDINATOR_DISPATCH_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/dispatch/actions.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// One rank's answer to CheckInputs.
struct CheckedInputs {
  std::string stage_name;
  std::string host;
  bool reads_data = false;  // Of the first or the last virtual stage.
  v1::InputsChecked answer;
};

// What the data decide.
struct ResolvedInputs {
  // The job's, with sequence_length, vocab and steps filled in.
  spec::JobSpec spec;
  int64_t steps = 0;
  int64_t sequences = 0;  // Of a pass over the training data.
  // Of one evaluation; 0: the job has none.
  int evaluation_micro_batches = 0;
  std::string data_digest;  // Of training and validation data, hex.
  // What the data hold and training has no use for; each a sentence.
  std::vector<std::string> ignored;
};

// A failure carries its reason (INPUT_NOT_VISIBLE, INVALID_SPEC) and names the
// place in the job file; the first rank in order decides.
// `chunks`: the most virtual stages that a rank may get.
// REQUIRES: one answer of each rank, at least one of them a reader.
absl::StatusOr<ResolvedInputs> ResolveInputs(
    const NewJob& job, const std::vector<CheckedInputs>& answers, int chunks);

// InvalidArgument with FILE:LINE:COL for a refusal of the planner, with its key
// path and reason. A plan that does not fit is InvalidArgument too: to ask
// again would not help.
absl::Status PlaceRefusal(const NewJob& job, const absl::Status& refusal);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_INPUTS_H_
