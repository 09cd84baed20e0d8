#include "coordinator/spec/paths.h"

#include "coordinator/spec/yaml_tree.h"

namespace penstock::coordinator::spec {

void ForEachPath(JobSpec& spec,
                 const std::function<void(absl::string_view, PathKind,
                                          std::string&)>& visit) {
  const auto given = [&](absl::string_view key, PathKind kind,
                         std::string& path) {
    if (!path.empty()) visit(key, kind, path);
  };
  given("model.from", PathKind::kModel, spec.model.from);
  given("data.train", PathKind::kData, spec.data.train);
  for (size_t i = 0; i < spec.data.sources.size(); ++i) {
    given(ChildPath(ItemPath("data.sources", i), "path"), PathKind::kData,
          spec.data.sources[i].path);
  }
  if (spec.data.validation.has_value()) {
    given("data.validation", PathKind::kData, spec.data.validation->path);
  }
  if (spec.data.tokenizer.has_value()) {
    given("data.tokenizer", PathKind::kSmallFile, *spec.data.tokenizer);
  }
  given("pipeline.schedule", PathKind::kSmallFile, spec.pipeline.schedule_file);
  given("checkpoint.dir", PathKind::kCheckpoint, spec.checkpoint.dir);
  if (spec.virtual_times.profile.has_value()) {
    given("virtual.profile", PathKind::kSmallFile, *spec.virtual_times.profile);
  }
  if (spec.resume_from.has_value()) {
    given("resume_from", PathKind::kCheckpoint, *spec.resume_from);
  }
}

JobSpec WithoutPaths(const JobSpec& spec) {
  JobSpec bare = spec;
  ForEachPath(bare, [](absl::string_view, PathKind, std::string& path) {
    path.clear();
  });
  return bare;
}

}  // namespace penstock::coordinator::spec
