// The rotary positions of a Llama config.json: `rope_theta` + `rope_scaling`
// (transformers 4) or `rope_parameters` (transformers 5).
#ifndef PENSTOCK_COORDINATOR_SPEC_HF_ROPE_H_
#define PENSTOCK_COORDINATOR_SPEC_HF_ROPE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

// Sets model.rope_theta and model.rope_scaling; `config` is an object. Every
// key of the rope object changes the mathematics, so an unknown one is an
// error, and so is a rope_type other than default, linear and llama3, a base
// below 1 (its frequencies would grow, to infinity) and a number that f32 does
// not hold.
void ReadHfRope(const nlohmann::json& config, ModelSpec& model,
                std::vector<std::string>& errors);

// The rules of a scaling whoever gave it: factor >= 1, low < high (llama3).
// "" where it is sound.
std::string CheckRopeScaling(const RopeScaling& scaling);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_HF_ROPE_H_
