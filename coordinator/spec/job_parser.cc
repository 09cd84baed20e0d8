#include "coordinator/spec/job_parser.h"

#include <optional>
#include <string>
#include <vector>

#include "common/text/quote.h"
#include "common/text/utf8.h"
#include "coordinator/spec/not_built_yet.h"
#include "coordinator/spec/rules.h"
#include "coordinator/spec/schema.h"
#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

ParsedJob ParseJob(absl::string_view bytes, absl::string_view file,
                   const ParseOptions& options) {
  ParsedJob job;
  // A file's name may hold any byte; a message may not.
  job.positions =
      PositionMap(common::text::FindNotText(file) == absl::string_view::npos
                      ? std::string(file)
                      : common::text::Quoted(file));
  std::optional<YamlNode> root =
      ParseYaml(bytes, job.positions, job.violations);
  if (!root.has_value()) return job;
  std::vector<Override> overrides;
  for (const std::string& setting : options.overrides) {
    overrides.push_back({.setting = setting});
  }
  overrides.insert(overrides.end(), options.flag_overrides.begin(),
                   options.flag_overrides.end());
  ApplyOverrides(overrides, *root, job.positions, job.violations);
  // An empty file breaks the same rules as one without any of the keys.
  if (root->kind == YamlNode::Kind::kNull) root->kind = YamlNode::Kind::kMap;
  Draft draft;
  ReadJob(*root, draft, job.violations);
  FinishModel(options.read_config_json, draft, job.violations, job.notes);
  FinishJob(file, draft, job.violations);
  CheckBuilt(draft.spec, job.violations);
  NoteWithoutEffect(draft, job.notes);
  job.spec = std::move(draft.spec);
  return job;
}

}  // namespace penstock::coordinator::spec
