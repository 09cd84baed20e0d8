// Reads the config.json of a Hugging Face model folder (GPT2LMHeadModel or
// LlamaForCausalLM, as transformers 4 and 5 write it) into a ModelSpec.
//
// hf_keys.cc holds the one table of the keys that are honoured and of the keys
// that must have a given value because another value changes the mathematics.
// Every other key is ignored, dropout among them: the job file's model.dropout
// alone decides.
#ifndef PENSTOCK_COORDINATOR_SPEC_HF_CONFIG_H_
#define PENSTOCK_COORDINATOR_SPEC_HF_CONFIG_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/spec/job_spec.h"

namespace penstock::coordinator::spec {

struct HfConfig {
  // Complete but for `from` and `dropout`, which stay as they are by default.
  ModelSpec model;
  // "KEY: what is wrong", all of them; `model` is usable only without any.
  std::vector<std::string> errors;
  // "attn_pdrop 0.1": dropout that the file has and that is ignored; what is 0
  // or no number is left out.
  std::vector<std::string> ignored_dropout;
};

// `bytes` is the whole file; at most 1 MiB and 32 levels. Never throws.
HfConfig ReadHfConfig(absl::string_view bytes);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_HF_CONFIG_H_
