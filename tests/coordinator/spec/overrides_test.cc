// --set, and the flags that stand for it.
#include "absl/strings/str_cat.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/violation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/spec/job_file_case.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::spec {
namespace {

using ::penstock::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobParserTest, OverridesReplaceAndAdd) {
  const ParsedJob job =
      ParseJob(kJob, "job.yaml",
               {.overrides = {"steps=1e2", "pipeline.stages=2",
                              "pipeline.partition=[1, 3]", "evaluate=none",
                              "optimizer={kind: sgd, lr: 0.5}",
                              "optimizer.lr=0.25", "pipeline.stages=2"}});
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.steps, 100);
  EXPECT_EQ(job.spec.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(job.spec.optimizer.lr, 0.25);
  EXPECT_THAT(*job.spec.pipeline.partition, ElementsAre(1, 3));
}

TEST(JobParserTest, OverridesAreShownAsTheirKey) {
  EXPECT_EQ(
      Errors(kJob, {"pipeline.stages=9", "optimizer={lr: x}", "model.colour=1",
                    "seed"}),
      "--set pipeline.stages: 9 stages * 1 chunk = 9 virtual stages, but 4 "
      "blocks + embedding + head fill at most 6\n"
      "--set optimizer: optimizer.lr: expected a number above 0, got \"x\"\n"
      "--set model.colour: unknown key; the keys here are from family layers "
      "width heads kv_heads head_dim ffn_width context vocab tied_embeddings "
      "dropout norm_eps rope_theta rope_scaling init_std\n"
      "--set \"seed\": expected KEY=VALUE with a dotted key, such as "
      "pipeline.stages=4");
}

TEST(JobParserTest, AFlagThatIsAnOverrideComesLastAndIsShownAsItself) {
  const ParsedJob job =
      ParseJob(kJob, "job.yaml",
               {.overrides = {"pipeline.stages=7", "seed=x"},
                .flag_overrides = {
                    {.setting = "pipeline.stages=9", .flag = "--stages"}}});
  EXPECT_EQ(RenderAll(job.violations, job.positions),
            "--set seed: expected a whole number of at least 0, got \"x\"\n"
            "--stages: 9 stages * 1 chunk = 9 virtual stages, but 4 blocks + "
            "embedding + head fill at most 6");
}

// Whoever finds it, and whenever: a rule of the planner knows key paths only.
TEST(JobParserTest, PositionsNameTheFlag) {
  const ParsedJob job =
      ParseJob(kJob, "job.yaml",
               {.flag_overrides = {
                    {.setting = "pipeline.stages=2", .flag = "--stages"}}});
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.pipeline.stages, 2);
  EXPECT_EQ(Render({"pipeline.stages", "too many"}, job.positions),
            "--stages: too many");
}

TEST(JobParserTest, BadOverrideKeysAndValuesAreRefused) {
  EXPECT_THAT(Errors(kJob, {"a..b=1"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(Errors(kJob, {"=1"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(Errors(kJob, {"pipeline.partition[0]=1"}),
              HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(Errors(kJob, {"steps=[1"}),
              HasSubstr("--set steps: value \"[1\": "));
  EXPECT_THAT(Errors(kJob, {"steps="}), HasSubstr("got nothing"));
  EXPECT_THAT(Errors(kJob, {"pipeline.schedule=file:"}),
              HasSubstr("write file:PATH, such as file:orders.csv"));
  EXPECT_THAT(Errors(kJob, {"seed=18446744073709551615"}),
              HasSubstr("at most 9223372036854775807"));
  EXPECT_THAT(Errors(kJob, {"steps=*x"}), HasSubstr("--set steps: value"));
  EXPECT_THAT(Errors(kJob, {"steps=\xff"}), HasSubstr("is not UTF-8 text"));
  EXPECT_THAT(Errors("- 1\n", {"steps=1"}), HasSubstr("got a list"));
}

TEST(JobParserTest, AnEmptyFileCanBeFilledByOverrides) {
  EXPECT_EQ(Errors("", {"name=x", "model.family=gpt2", "model.layers=1",
                        "model.width=8", "model.heads=1", "model.context=8",
                        "data.train=a.txt", "batch.global=1", "steps=1"}),
            "");
}

TEST(JobParserTest, OverrideOfAWordWithASectionBelowIt) {
  const ParsedJob job =
      ParseJob(absl::StrCat(kJob, "evaluate: none\n"), "job.yaml",
               {.overrides = {"evaluate.every=7", "data.validation=10%"}});
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.evaluate->every, 7);
  EXPECT_EQ(job.spec.evaluate->batches, 8);
  EXPECT_EQ(job.spec.data.validation->share_millionths, 100000);
}

TEST(JobParserTest, SettingAKeyForgetsThePlacesBelowItAndNoOthers) {
  PositionMap positions("job.yaml");
  int line = 0;
  for (const char* path : {"a", "a-b", "a.b", "a.b.c", "a.b-c", "a.b[0]",
                           "a.b[0].x", "a.bc", "b"}) {
    positions.AddFilePosition(path, ++line, 1);
  }
  positions.Remove("a.b");
  EXPECT_EQ(positions.Where("a.b"), "job.yaml:1:1");
  EXPECT_EQ(positions.Where("a.b.c"), "job.yaml:1:1");
  EXPECT_EQ(positions.Where("a.b[0].x"), "job.yaml:1:1");
  EXPECT_EQ(positions.Where("a-b"), "job.yaml:2:1");
  EXPECT_EQ(positions.Where("a.b-c"), "job.yaml:5:1");
  EXPECT_EQ(positions.Where("a.bc"), "job.yaml:8:1");
  EXPECT_EQ(positions.Where("b"), "job.yaml:9:1");
}

}  // namespace
}  // namespace penstock::coordinator::spec
