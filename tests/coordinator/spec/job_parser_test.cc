#include "coordinator/spec/job_parser.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/status/error_details.h"
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
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobParserTest, DefaultsAreThoseOfTheInterface) {
  const ParsedJob job = ParseJob(kJob, "job.yaml", {});
  ASSERT_THAT(job.status(), IsOk());
  const JobSpec& s = job.spec;
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.model.head_dim, 16);
  EXPECT_EQ(s.model.ffn_width, 256);
  EXPECT_EQ(s.model.vocab, 256);
  EXPECT_TRUE(s.model.tied_embeddings);
  EXPECT_EQ(s.data.format, DataFormat::kText);
  EXPECT_EQ(s.data.sequence_length, 32);
  EXPECT_FALSE(s.data.validation.has_value());
  EXPECT_EQ(s.batch.micro_batch, 1);
  EXPECT_EQ(s.batch.micro_batches, 8);
  EXPECT_EQ(s.pipeline.stages, 1);
  EXPECT_EQ(s.pipeline.schedule, ScheduleKind::k1F1B);
  EXPECT_EQ(s.pipeline.chunks, 1);
  EXPECT_EQ(s.lr_schedule.kind, LrKind::kConstant);
  EXPECT_EQ(s.lr_schedule.decay_steps, 10);
  EXPECT_FALSE(s.evaluate.has_value());
  EXPECT_EQ(s.virtual_times.transfer, absl::ZeroDuration());
}

TEST(JobParserTest, LlamaHasItsOwnDefaults) {
  const ParsedJob job =
      ParseJob(absl::StrReplaceAll(kJob, {{"gpt2", "llama"}}), "job.yaml",
               {.overrides = {"model.width=4096", "model.heads=32"}});
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.spec.model.ffn_width, 11008);  // as Llama 7B's
  EXPECT_FALSE(job.spec.model.tied_embeddings);
  EXPECT_EQ(job.spec.model.rope_theta, 10000.0);
  EXPECT_EQ(job.spec.model.rope_scaling.kind, RopeScalingKind::kNone);
}

TEST(JobParserTest, NameDefaultsToTheFilesStem) {
  const ParsedJob job =
      ParseJob(absl::StrReplaceAll(kJob, {{"name: tiny\n", ""}}),
               "some/dir/shakespeare.v2.yaml", {.overrides = {"steps=1"}});
  EXPECT_THAT(RenderAll(job.violations, job.positions),
              HasSubstr("such as name: shakespeare-v2"));
  EXPECT_EQ(ParseJob(absl::StrReplaceAll(kJob, {{"name: tiny\n", ""}}),
                     "some/dir/shakespeare.yaml", {})
                .spec.name,
            "shakespeare");
}

TEST(JobParserTest, NamesOfOneAndFortyLettersAreAccepted) {
  EXPECT_EQ(Errors(kJob, {"name=a"}), "");
  EXPECT_EQ(Errors(kJob, {absl::StrCat("name=", std::string(40, 'a'))}), "");
  EXPECT_THAT(Errors(kJob, {absl::StrCat("name=", std::string(41, 'a'))}),
              HasSubstr("does not match"));
  EXPECT_THAT(Errors(kJob, {"name=a-"}), HasSubstr("does not match"));
  EXPECT_THAT(Errors(kJob, {"name=1a"}), HasSubstr("does not match"));
}

TEST(JobParserTest, RulesOfOtherRoomsAreShownAtTheirPlace) {
  const ParsedJob job = ParseJob(kJob, "dir/job.yaml",
                                 {.overrides = {"pipeline.schedule=gpipe"}});
  ASSERT_THAT(job.status(), IsOk());
  EXPECT_EQ(job.positions.Where("batch.global"), "dir/job.yaml:11:3");
  EXPECT_EQ(job.positions.Where("batch.micro_batch"), "dir/job.yaml:10:1");
  EXPECT_EQ(job.positions.Where("precision"), "dir/job.yaml:1:1");
  EXPECT_EQ(job.positions.Where("pipeline.schedule"),
            "--set pipeline.schedule");
  const absl::Status status =
      ToStatus({{"batch.global", "too small"}}, job.positions);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "dir/job.yaml:11:3: batch.global: too small"));
  EXPECT_EQ(common::status::Reason(status), "INVALID_SPEC");
}

TEST(JobParserTest, RopeScalingIsWrittenAsInConfigJsonOldAndNew) {
  const auto scaled = [](absl::string_view scaling) {
    return ParseJob(absl::StrReplaceAll(
                        kJob, {{"family: gpt2", absl::StrCat("family: llama\n  "
                                                             "rope_scaling: ",
                                                             scaling)}}),
                    "job.yaml", ParseOptions{});
  };
  const ParsedJob old_form = scaled("{type: linear, factor: 2}");
  ASSERT_THAT(old_form.status(), IsOk());
  EXPECT_EQ(old_form.spec.model.rope_scaling.kind, RopeScalingKind::kLinear);
  EXPECT_TRUE(old_form.spec == scaled("{rope_type: linear, factor: 2}").spec);
  EXPECT_THAT(ToResolvedYaml(old_form.spec),
              HasSubstr("rope_scaling: {rope_type: linear, factor: 2}"));
  const ParsedJob both = scaled("{type: linear, rope_type: linear, factor: 2}");
  EXPECT_THAT(RenderAll(both.violations, both.positions),
              HasSubstr("model.rope_scaling.type: rope_type is given too; "
                        "keep one of the two"));
  const ParsedJob unknown = scaled("{type: dynamic, factor: 2}");
  EXPECT_THAT(RenderAll(unknown.violations, unknown.positions),
              HasSubstr("model.rope_scaling.type: expected one of default "
                        "linear llama3, got \"dynamic\""));
  const ParsedJob alone = scaled("{type: linear}");
  EXPECT_THAT(RenderAll(alone.violations, alone.positions),
              HasSubstr("model.rope_scaling.factor: is required by rope_type: "
                        "linear"));
}

// Of a smaller base the frequencies grow, up to infinity.
TEST(JobParserTest, ARotaryBaseBelowOneIsRefused) {
  const std::string llama = absl::StrReplaceAll(kJob, {{"gpt2", "llama"}});
  EXPECT_EQ(Errors(llama, {"model.rope_theta=1"}), "");
  EXPECT_THAT(Errors(llama, {"model.rope_theta=1e-37"}),
              HasSubstr("expected a number of at least 1, got \"1e-37\""));
}

// The deepest model whose dropout sites have numbers (server/model).
TEST(JobParserTest, MoreLayersThanStagesCanTrainAreRefused) {
  EXPECT_EQ(Errors(kJob, {"model.layers=21845"}), "");
  EXPECT_THAT(Errors(kJob, {"model.layers=21846"}),
              HasSubstr("a whole number from 1 to 21845"));
}

TEST(JobParserTest, ValidationDataOfAnotherFormatAreRefused) {
  EXPECT_EQ(Errors(kJob, {"data.validation=valid"}), "");
  EXPECT_EQ(Errors(kJob, {"data.validation=valid.jsonl"}),
            "--set data.validation: is jsonl by its name, and the training "
            "data are text; give data of one format, or say with data.format "
            "what both are");
  EXPECT_THAT(Errors(kJob, {"data.train=a.bin", "data.validation=b.txt",
                            "model.vocab=256"}),
              HasSubstr("is text by its name, and the training data are "
                        "nanogpt"));
  EXPECT_EQ(Errors(kJob, {"data.validation=valid.jsonl", "data.format=text"}),
            "");
}

TEST(JobParserTest, ChunksFollowTheSchedule) {
  const auto chunks = [](absl::string_view schedule) {
    return ParseJob(
               kJob, "job.yaml",
               {.overrides = {absl::StrCat("pipeline.schedule=", schedule)}})
        .spec.pipeline.chunks;
  };
  EXPECT_EQ(chunks("zb-v"), 2);
  EXPECT_EQ(chunks("v-min"), 2);
  EXPECT_EQ(chunks("dualpipe-v"), 2);
  EXPECT_EQ(chunks("interleaved"), 2);
  EXPECT_EQ(chunks("looped-bfs"), 2);
  EXPECT_EQ(chunks("zb-h1"), 1);
  EXPECT_EQ(chunks("gpipe"), 1);
  EXPECT_EQ(chunks("file:x.csv"), std::nullopt);  // As the file has them.
  EXPECT_EQ(chunks("auto"), std::nullopt);
}

TEST(JobParserTest, StrangeKeysAreQuotedAndCut) {
  const std::string text =
      absl::StrCat(kJob, "\"a b\": 1\n", std::string(100, 'k'), ": 1\n");
  EXPECT_THAT(Errors(text), HasSubstr("job.yaml:13:1: \"a b\": unknown key"));
  EXPECT_THAT(Errors(text),
              HasSubstr(absl::StrCat("job.yaml:14:1: \"", std::string(64, 'k'),
                                     "...\": unknown key")));
}

TEST(JobParserTest, ByteOrderMarkIsAccepted) {
  EXPECT_EQ(Errors(absl::StrCat("\xEF\xBB\xBF", kJob)), "");
}

TEST(JobParserTest, NotesSayThatRecoveryIsNotInEffect) {
  EXPECT_THAT(ParseJob(kJob, "job.yaml", {}).notes,
              ElementsAre("recovery: none (recovery is not built yet)"));
}

TEST(JobParserTest, NotesNameEachGivenKeyThatHasNoEffect) {
  const std::string text =
      absl::StrCat(kJob, "checkpoint: {every: 5}\nrecovery: {mode: replica}\n");
  EXPECT_THAT(
      ParseJob(text, "job.yaml", {.overrides = {"trackers.csv=true"}}).notes,
      ElementsAre("checkpoint: accepted, no effect yet (checkpoints are not "
                  "built yet)",
                  "recovery: none (recovery is not built yet)",
                  "trackers: accepted, no effect yet (trackers are not built "
                  "yet)"));
}

}  // namespace
}  // namespace penstock::coordinator::spec
