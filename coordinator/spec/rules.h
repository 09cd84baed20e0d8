// What follows from several keys together: defaults that depend on other keys,
// and the rules that a job must keep and that can be checked without looking at
// data, devices or schedules.
#ifndef PENSTOCK_COORDINATOR_SPEC_RULES_H_
#define PENSTOCK_COORDINATOR_SPEC_RULES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/spec/schema.h"
#include "coordinator/spec/violation.h"

namespace penstock::coordinator::spec {

// Reads the config.json in a model folder, named as the job file names it.
using ConfigReader =
    std::function<absl::StatusOr<std::string>(absl::string_view folder)>;

// Whether a rule may look at `key_path`: nothing was wrong with it so far.
bool IsSound(absl::string_view key_path,
             const std::vector<Violation>& violations);

// Model, from the job file's keys or from model.from's config.json.
void FinishModel(const ConfigReader& read_config, Draft& draft,
                 std::vector<Violation>& violations,
                 std::vector<std::string>& notes);

// All the rest; after FinishModel. `file` gives the default name.
void FinishJob(absl::string_view file, Draft& draft,
               std::vector<Violation>& violations);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_RULES_H_
