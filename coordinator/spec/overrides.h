// `--set KEY=VALUE` on the tree of a job file, before the schema reads it.
#ifndef PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_
#define PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/spec/violation.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

// Applies `overrides` in order. KEY is dotted (`pipeline.stages`), VALUE is
// YAML (`[2, 2]`, `{kind: sgd}`, `none`); missing sections are made, a value
// that was there is replaced with everything below it. What was set is shown
// as `--set KEY` from then on.
void ApplyOverrides(absl::Span<const std::string> overrides, YamlNode& root,
                    PositionMap& positions, std::vector<Violation>& violations);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_OVERRIDES_H_
