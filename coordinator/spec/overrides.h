// `--set KEY=VALUE`, and flags that stand for it, on the tree of a job file,
// before the schema reads it.
#ifndef PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_
#define PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/spec/violation.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

struct Override {
  std::string setting;  // "KEY=VALUE"
  std::string flag;     // that stands for it, as "--stages"; "": `--set`
};

// In the order of `list`: KEY is dotted (`pipeline.stages`), VALUE is YAML
// (`[2, 2]`, `{kind: sgd}`, `none`); missing sections are made, a value that
// was there is replaced with everything below it. What was set is shown as
// `--set KEY`, or as the flag, from then on.
//
// Bounded as the file is: a list that is too long (kMaxOverrides,
// kMaxOverrideBytes) is refused whole, one that makes more values than
// kMaxValues from there on.
void ApplyOverrides(absl::Span<const Override> list, YamlNode& root,
                    PositionMap& positions, std::vector<Violation>& violations);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_
