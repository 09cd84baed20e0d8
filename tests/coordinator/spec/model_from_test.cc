// model.from: what a folder's config.json decides, and where its errors stand.
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/resolved_yaml.h"
#include "coordinator/spec/violation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/spec/job_file_case.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::spec {
namespace {

using ::penstock::testing::IsOk;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kFrom = R"(name: tiny
model:
  from: some/model
data: {train: corpus.txt}
batch: {global: 8}
steps: 10
)";

constexpr absl::string_view kConfig = R"({"model_type": "llama",
  "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2,
  "intermediate_size": 40, "max_position_embeddings": 4096,
  "vocab_size": 300})";

ParsedJob ParseFrom(absl::string_view text, absl::string_view config) {
  return ParseJob(
      text, "job.yaml",
      {.read_config_json =
           [config](absl::string_view folder) -> absl::StatusOr<std::string> {
        EXPECT_EQ(folder, "some/model");
        return std::string(config);
      }});
}

TEST(JobParserTest, ModelFromTakesEverythingButDropoutFromConfigJson) {
  const ParsedJob job = ParseFrom(
      absl::StrReplaceAll(kFrom, {{"model\n", "model\n  dropout: 0.1\n"}}),
      kConfig);
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.model.from, "some/model");
  EXPECT_EQ(job.spec.model.family, ModelFamily::kLlama);
  EXPECT_EQ(job.spec.model.layers, 2);
  EXPECT_EQ(job.spec.model.dropout, 0.1);
  EXPECT_EQ(job.spec.model.vocab, 300);
  EXPECT_EQ(job.spec.data.sequence_length, 1024);
  EXPECT_THAT(job.notes,
              ::testing::Contains(HasSubstr("data.sequence_length is 1024")));
  const ParsedJob again = ParseFrom(ToResolvedYaml(job.spec), kConfig);
  ASSERT_THAT(again.status(), IsOk());
  JobSpec decided = job.spec;  // job.yaml says which format `auto` was.
  decided.data.format_by_name = false;
  EXPECT_TRUE(again.spec == decided);
}

TEST(JobParserTest, TheDefaultSequenceOfAFolderIsAlwaysNoted) {
  const std::string small = absl::StrReplaceAll(kConfig, {{"4096", "64"}});
  const ParsedJob job = ParseFrom(kFrom, small);
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.data.sequence_length, 64);
  EXPECT_THAT(job.notes, Contains("data.sequence_length is 64 unless the data "
                                  "decide (the model's longest is 64)"));
  const std::string given =
      absl::StrReplaceAll(kFrom, {{"{train", "{sequence_length: 32, train"}});
  for (const std::string& note : ParseFrom(given, small).notes) {
    EXPECT_THAT(note, Not(HasSubstr("sequence_length")));
  }
}

TEST(JobParserTest, OtherModelKeysBesideFromAreRefused) {
  const ParsedJob job = ParseFrom(
      absl::StrReplaceAll(kFrom, {{"model\n", "model\n  layers: 2\n"}}),
      kConfig);
  EXPECT_EQ(RenderAll(job.violations, job.positions),
            "job.yaml:4:3: model.layers: only dropout may stand beside "
            "model.from; the rest is what its config.json says");
}

TEST(JobParserTest, ErrorsOfConfigJsonStandAtModelFrom) {
  const ParsedJob job = ParseFrom(
      kFrom, absl::StrReplaceAll(
                 kConfig, {{"300", "200"},
                           {"{\"model", "{\"mlp_bias\": true, \"model"}}));
  EXPECT_EQ(RenderAll(job.violations, job.positions),
            "job.yaml:3:3: model.from: config.json: mlp_bias: is true, must be "
            "false; biases in the MLP are not built");
  const ParsedJob small =
      ParseFrom(kFrom, absl::StrReplaceAll(kConfig, {{"300", "200"}}));
  EXPECT_EQ(RenderAll(small.violations, small.positions),
            "job.yaml:3:3: model.from: the vocabulary has 200 ids, too few for "
            "the data: the byte tokenizer has 256");
}

TEST(JobParserTest, DropoutOfConfigJsonIsNotedWhereNothingElseIsSaid) {
  const std::string config = absl::StrReplaceAll(
      kConfig, {{"{\"model", "{\"attention_dropout\": 0.1, \"model"}});
  EXPECT_THAT(ParseFrom(kFrom, config).notes,
              Contains("dropout of config.json (attention_dropout 0.1) is "
                       "ignored; model.dropout is the key, and is 0"));
  const std::string given =
      absl::StrReplaceAll(kFrom, {{"from: ", "dropout: 0.2\n  from: "}});
  for (const std::string& note : ParseFrom(given, config).notes) {
    EXPECT_THAT(note, Not(HasSubstr("dropout")));
  }
}

TEST(JobParserTest, UnreadableConfigJsonStandsAtModelFrom) {
  const ParsedJob job = ParseJob(
      kFrom, "job.yaml", {.read_config_json = [](absl::string_view) {
        return absl::StatusOr<std::string>(absl::NotFoundError("no file"));
      }});
  EXPECT_EQ(RenderAll(job.violations, job.positions),
            "job.yaml:3:3: model.from: config.json cannot be read: no file");
}

TEST(JobParserTest, StagesOfModelFromAreChecked) {
  const ParsedJob job =
      ParseFrom(absl::StrCat(kFrom, "pipeline: {stages: 5}\n"), kConfig);
  EXPECT_THAT(RenderAll(job.violations, job.positions),
              HasSubstr("job.yaml:7:12: pipeline.stages: 5 stages"));
}

}  // namespace
}  // namespace penstock::coordinator::spec
