// A parity case of tests/testdata/parity: a tiny Hugging Face model and what
// torch + transformers computed from it. Shared by every test that trains.
#ifndef PENSTOCK_TESTS_SERVER_MODEL_PARITY_CASE_H_
#define PENSTOCK_TESTS_SERVER_MODEL_PARITY_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/model/model_config.h"
#include "server/model/parameters.h"

namespace penstock::testing {

struct ParityStep {
  double loss = 0;
  int64_t valid_tokens = 0;
  double grad_norm = 0;
  std::vector<double> sequence_loss;
};

using NamedTensors = std::map<std::string, std::vector<float>>;

struct ParityCase {
  std::string name;
  server::model::ModelConfig model;
  double learning_rate = 0;
  int64_t sequences_per_step = 0;
  int64_t sequence_length = 0;  // Predicted tokens: tokens of a line - 1.
  std::vector<int64_t> micro_batch_sizes;
  std::vector<ParityStep> steps;
  // Sequences in order, sequence_length each; labels already shifted.
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<int32_t>> labels;
  NamedTensors initial;    // The model folder's tensors.
  NamedTensors gradients;  // First step, before clipping, of the mean loss.
  NamedTensors weights;    // After the last step.

  // For ParameterStore::Load; borrows this case.
  server::model::ParameterStore::Source Source() const;
};

// All cases, and the micro-batch sizes that each lists.
struct ParityListing {
  std::string name;
  std::vector<int64_t> micro_batch_sizes;
};
std::vector<ParityListing> ParityListings();
std::vector<std::string> ParityCaseNames();

// Reads FOLDER/name, FOLDER being tests/testdata/parity. FailedPrecondition: it
// is not as listed.
absl::StatusOr<ParityCase> ReadParityCase(const std::string& folder,
                                          const std::string& name);

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_MODEL_PARITY_CASE_H_
