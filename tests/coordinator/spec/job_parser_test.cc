#include "coordinator/spec/job_parser.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status/error_details.h"
#include "coordinator/spec/resolved_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::spec {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::string_view kJob = R"(name: tiny
model:
  family: gpt2
  layers: 4
  width: 64
  heads: 4
  context: 32
data:
  train: corpus.txt
batch:
  global: 8
steps: 10
)";

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

// The errors of a job, one line each.
std::string Errors(absl::string_view text,
                   const std::vector<std::string>& overrides = {}) {
  const ParsedJob job =
      ParseJob(text, "job.yaml", ParseOptions{.overrides = overrides});
  return RenderAll(job.violations, job.positions);
}

ParsedJob ParseFrom(absl::string_view text, absl::string_view config) {
  return ParseJob(
      text, "job.yaml",
      {.read_config_json =
           [config](absl::string_view folder) -> absl::StatusOr<std::string> {
        EXPECT_EQ(folder, "some/model");
        return std::string(config);
      }});
}

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
  // The schedules are not built yet, but what they would run is resolved.
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
  EXPECT_EQ(chunks("file:x.csv"), 1);
  EXPECT_EQ(chunks("auto"), std::nullopt);
}

TEST(JobParserTest, MoreThanAMebibyteIsRefused) {
  const std::string big = absl::StrCat(kJob, std::string(1 << 20, '#'));
  EXPECT_THAT(Errors(big), HasSubstr("at most 1048576 (1 MiB) are allowed"));
}

TEST(JobParserTest, ManyValuesAreRefusedNotBuilt) {
  std::string many = "x: [";
  for (int i = 0; i < 70000; ++i) many += "1,";
  EXPECT_THAT(Errors(many + "]\n"), HasSubstr("holds more than 65536 values"));
}

TEST(JobParserTest, TheSetListIsBoundedAsTheFileIs) {
  std::vector<std::string> many(1000, "seed=1");
  EXPECT_EQ(Errors(kJob, many), "");
  many.push_back("steps=3");
  EXPECT_EQ(Errors(kJob, many),
            "--set: is given 1001 times, 6007 bytes in all; at most 1000 and "
            "1048576 (1 MiB) are allowed");
  const std::string half =
      absl::StrCat("seed=1 #", std::string((1 << 19) - 8, ' '));
  EXPECT_EQ(Errors(kJob, {half, half}), "");
  EXPECT_THAT(Errors(kJob, {half, half, "seed=1"}),
              HasSubstr("is given 3 times, 1048582 bytes in all"));
}

TEST(JobParserTest, ValuesOfTheFileAndOfTheSetListAreCountedTogether) {
  std::string list = "[";
  for (int i = 0; i < 32000; ++i) list += "1,";
  list += "]";
  const std::string file = absl::StrCat(kJob, "x: ", list, "\n");
  EXPECT_THAT(Errors(file, {absl::StrCat("y=", list)}),
              Not(HasSubstr("more than 65536 values")));
  EXPECT_THAT(Errors(file, {absl::StrCat("y=", list), absl::StrCat("z=", list),
                            absl::StrCat("a.b.c=", list)}),
              AllOf(HasSubstr("--set z: with this value the job file and what "
                              "is set over it hold more than 65536 values"),
                    Not(HasSubstr("--set a"))));
}

TEST(JobParserTest, OnlyTheFirstThousandErrorsAreKept) {
  std::string items;
  for (int i = 0; i < 60000; ++i) items += "&a 1,";
  const ParsedJob anchors =
      ParseJob(absl::StrCat(kJob, "x: [", items, "]\n"), "job.yaml", {});
  EXPECT_EQ(anchors.violations.front().key_path, "x[0]");
  EXPECT_GE(anchors.violations.size(), kMaxViolations);
  EXPECT_LE(anchors.violations.size(), kMaxViolations + 20);

  std::string blocks;
  for (int i = 0; i < 60000; ++i) blocks += "x,";
  const ParsedJob partition =
      ParseJob(absl::StrCat(kJob, "pipeline: {partition: [", blocks, "]}\n"),
               "job.yaml", {});
  EXPECT_EQ(partition.violations.size(), kMaxViolations);
}

// No key of the job file is as long; what stands so deep is shown by what is
// around it.
TEST(JobParserTest, LongPathsHaveThePlaceOfTheirSection) {
  std::string text, path;
  for (int i = 0; i < 6; ++i) {
    const std::string key(64, static_cast<char>('a' + i));
    absl::StrAppend(&text, std::string(i, ' '), key, ":\n");
    absl::StrAppend(&path, i > 0 ? "." : "", key);
  }
  const ParsedJob job =
      ParseJob(absl::StrCat(text, "      z: 1\n"), "job.yaml", {});
  EXPECT_EQ(job.positions.Where(path.substr(0, 3 * 65 - 1)), "job.yaml:3:3");
  EXPECT_EQ(job.positions.Where(path), "job.yaml:3:3");
  EXPECT_THAT(Errors(kJob, {absl::StrCat(path, "=1")}),
              HasSubstr("expected KEY=VALUE with a dotted key"));
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
