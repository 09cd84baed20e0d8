// The one table of the keys of a Hugging Face config.json that decide what is
// computed: those that are honoured, and those that must have a given value
// because with another one the model would not be the one that is built here.
// A key in no row is ignored (dropout, token ids, caches, how transformers was
// run); whoever finds one that changes the mathematics adds a row.
#ifndef PENSTOCK_COORDINATOR_SPEC_HF_KEYS_H_
#define PENSTOCK_COORDINATOR_SPEC_HF_KEYS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

// Fills the whole numbers of `model` from `json`; model.family is set. What is
// wrong goes to `errors` as "KEY: what".
void ReadHfWholes(const nlohmann::json& json, ModelSpec& model,
                  std::vector<std::string>& errors);

// Every key that must have a given value has it; `model` is complete (its
// sizes are 0 where they were wrong: such keys are not looked at).
void CheckHfKeys(const nlohmann::json& json, const ModelSpec& model,
                 std::vector<std::string>& errors);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_HF_KEYS_H_
