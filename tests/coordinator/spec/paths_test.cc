#include "coordinator/spec/paths.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/resolved_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

JobSpec JobWithEveryPath() {
  JobSpec spec;
  spec.model.from = "P0";
  spec.data.train = "P1";
  spec.data.sources = {{.path = "P2"}, {.path = "P3"}};
  spec.data.validation.emplace().path = "P4";
  spec.data.tokenizer = "P5";
  spec.pipeline.schedule = ScheduleKind::kFile;
  spec.pipeline.schedule_file = "P6";
  spec.checkpoint.dir = "P7";
  spec.virtual_times.profile = "P8";
  spec.resume_from = "P9";
  return spec;
}

TEST(PathsTest, EveryPathIsVisitedOnceWithItsKey) {
  JobSpec spec = JobWithEveryPath();
  std::vector<std::string> seen;
  ForEachPath(spec, [&](absl::string_view key, PathKind, std::string& path) {
    seen.push_back(absl::StrCat(key, "=", path));
    path = absl::StrCat("/base/", path);
  });
  EXPECT_THAT(
      seen,
      ElementsAre("model.from=P0", "data.train=P1", "data.sources[0].path=P2",
                  "data.sources[1].path=P3", "data.validation=P4",
                  "data.tokenizer=P5", "pipeline.schedule=P6",
                  "checkpoint.dir=P7", "virtual.profile=P8", "resume_from=P9"));
  EXPECT_EQ(spec.data.train, "/base/P1");
  EXPECT_EQ(spec.pipeline.schedule_file, "/base/P6");
}

TEST(PathsTest, AbsentPathsAreNotVisited) {
  JobSpec spec = {
      .data = {.validation = ValidationSpec{.share_millionths = 50000}}};
  ForEachPath(spec, [](absl::string_view key, PathKind, std::string&) {
    ADD_FAILURE() << key;
  });
}

TEST(PathsTest, TheJobWithoutPathsDoesNotShowWhereFilesAre) {
  // Each of job.yaml's paths is one that ForEachPath knows.
  EXPECT_THAT(ToResolvedYaml(JobWithEveryPath()), HasSubstr("P1"));
  const std::string bare = ToResolvedYaml(WithoutPaths(JobWithEveryPath()));
  EXPECT_THAT(bare, Not(HasSubstr("P")));
}

}  // namespace
}  // namespace penstock::coordinator::spec
