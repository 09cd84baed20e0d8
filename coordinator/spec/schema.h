// The job file's schema: one table of every key, its type and where its value
// goes. ReadJob walks a tree by that table; defaults that depend on other keys
// and rules over several keys come after it (rules.h).
#ifndef PENSTOCK_COORDINATOR_SPEC_SCHEMA_H_
#define PENSTOCK_COORDINATOR_SPEC_SCHEMA_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/violation.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

// A JobSpec while keys are being read: values whose default depends on other
// keys stay apart until all are known.
struct Draft {
  JobSpec spec;

  std::optional<int64_t> kv_heads;
  std::optional<int64_t> head_dim;
  std::optional<int64_t> ffn_width;
  std::optional<int64_t> vocab;
  std::optional<bool> tied_embeddings;
  std::optional<DataFormat> format;  // nullopt: auto
  std::optional<int64_t> chunks;     // nullopt: auto
  // Of model.rope_scaling; nullopt: not given.
  std::optional<RopeScalingKind> rope_type;  // By its older word, `type`.
  std::optional<double> rope_factor;
  std::optional<double> rope_low;
  std::optional<double> rope_high;
  std::optional<int64_t> rope_original_context;

  // Key paths whose value was read, sections included.
  std::set<std::string, std::less<>> given;

  bool Given(absl::string_view key_path) const {
    return given.find(key_path) != given.end();
  }
};

// Reads every key of `root` into `draft`; unknown keys and wrong types go to
// `violations`, all of them.
void ReadJob(const YamlNode& root, Draft& draft,
             std::vector<Violation>& violations);

// Every key path of the table, in the job file's order.
const std::vector<absl::string_view>& AllKeyPaths();

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_SCHEMA_H_
