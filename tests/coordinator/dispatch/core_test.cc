// Jobs that go well, and what is told of them.
#include "coordinator/dispatch/core.h"

#include <algorithm>
#include <set>
#include <string>

#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::Job;

std::vector<json> Lines(const std::string& text) {
  std::vector<json> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(json::parse(text.substr(begin, end - begin)));
  }
  return lines;
}

TEST(CoreTest, AJobRunsToItsEndForEveryShape) {
  for (const int stages : {1, 2, 3, 6}) {
    for (const int m : {1, 2, stages, stages + 1, 8}) {
      FakeCluster cluster;
      cluster.Start(stages);
      ASSERT_OK(cluster.Create(TinyJob(stages, m)).status());
      cluster.Run();
      const Job job = cluster.Job();
      ASSERT_EQ(job.state(), Job::STATE_SUCCEEDED) << job.DebugString();
      EXPECT_EQ(job.step(), 3);
      for (int i = 0; i < stages; ++i) {
        EXPECT_EQ(cluster.stage(i).releases().size(), 3);
      }
    }
  }
}

TEST(CoreTest, ASuccessReleasesItsStagesWithoutACause) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  ASSERT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(cluster.stage(i).abort().release());
    EXPECT_FALSE(cluster.stage(i).abort().has_cause());
  }
}

v1::MemoryBytes ToProto(const planner::RankMemory& memory) {
  v1::MemoryBytes bytes;
  bytes.set_parameters(memory.parameters);
  bytes.set_gradients(memory.gradients);
  bytes.set_optimizer(memory.optimizer);
  bytes.set_activation_slots(memory.activation_slots);
  bytes.set_workspace(memory.workspace);
  bytes.set_transfer_slots(memory.transfer_slots);
  return bytes;
}

TEST(CoreTest, MemoryThatWasNotPlannedIsWarnedOfAndTold) {
  const NewJob job = TinyJob(2, 2);
  ASSERT_OK_AND_ASSIGN(const auto request, PlanRequestOf(job));
  ASSERT_OK_AND_ASSIGN(const auto plan, planner::MakePlan(request));
  FakeCluster cluster;
  cluster.Start(2);
  for (const int rank : {0, 1}) {
    cluster.stage(rank).memory = ToProto(plan.memory[rank]);
    cluster.stage(rank).peak_memory = cluster.stage(rank).memory;
  }
  // A step allocated: it shows only at the end.
  const int64_t workspace = plan.memory[1].workspace;
  cluster.stage(1).peak_memory->set_workspace(workspace + 100);
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  ASSERT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  const auto warnings = cluster.Occurrences("MEMORY_PREDICTION");
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_EQ(warnings[0].stage_name(), "stage-1");
  EXPECT_THAT(warnings[0].message(),
              HasSubstr("(workspace " + std::to_string(workspace + 100) +
                        " instead of " + std::to_string(workspace) + ")"));
  const json stages = json::parse(cluster.File("summary.json"))["stages"];
  EXPECT_EQ(stages[0]["peak_bytes"]["measured"], plan.memory[0].total());
  EXPECT_EQ(stages[1]["peak_bytes"]["measured"], plan.memory[1].total() + 100);
  EXPECT_EQ(stages[1]["peak_bytes"]["predicted"], plan.memory[1].total());
}

TEST(CoreTest, RevisionsAreContiguousAndTheTerminalStateIsLast) {
  FakeCluster cluster;
  cluster.Start(1);
  ASSERT_OK(cluster.Create(TinyJob(1, 1)).status());
  cluster.Run();
  int64_t revision = 0;
  for (const v1::JobEvent& event : cluster.events()) {
    EXPECT_EQ(event.revision(), ++revision);
  }
  ASSERT_TRUE(cluster.events().back().has_job());
  EXPECT_EQ(cluster.events().back().job().state(), Job::STATE_SUCCEEDED);
  EXPECT_FALSE(cluster.events().back().job().summary_json().empty());
}

TEST(CoreTest, AtMostTwoMessagesAStageAndStepEachWayWhateverMIs) {
  for (const int m : {1, 4, 64}) {
    FakeCluster cluster;
    cluster.Start(3);
    NewJob job = TinyJob(3, m, 20);
    ASSERT_OK(cluster.Create(job).status());
    cluster.Run();
    ASSERT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
    for (int i = 0; i < 3; ++i) {
      // CheckInputs, ProbeOutput, Assignment and End besides.
      EXPECT_EQ(cluster.stage(i).counts()["received"], 2 * 20 + 4) << m;
      EXPECT_EQ(cluster.stage(i).counts()["sent"], 2 * 20) << m;
    }
  }
}

TEST(CoreTest, CommandsGoOutUpToTheWindowAndNoFurther) {
  for (const int window : {1, 2, 3, 100}) {
    FakeCluster cluster(Options{.window = window});
    cluster.Start(2);
    cluster.stage(1).reports_steps = false;
    ASSERT_OK(cluster.Create(TinyJob(2, 4, 10)).status());
    cluster.Run();
    EXPECT_EQ(cluster.Job().state(), Job::STATE_RUNNING);
    EXPECT_EQ(cluster.stage(0).commands_seen().size(), std::min(window, 10));
    EXPECT_TRUE(cluster.stage(0).releases().empty());
  }
}

TEST(CoreTest, CommandsAreThePlansInItsOrder) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 3, 1)).status());
  cluster.Run();
  const auto text = [&](int stage) {
    std::string order;
    for (const v1::Command& c :
         cluster.stage(stage).commands_seen().at(0).commands()) {
      order += (c.op() == v1::OP_FORWARD ? "F" : "B") +
               std::to_string(c.micro_batch()) + (c.receives() ? "r" : "") +
               (c.sends() ? "s" : "") + " ";
    }
    return order;
  };
  EXPECT_EQ(text(0), "F0s F1s B0r F2s B1r B2r ");
  EXPECT_EQ(text(1), "F0r B0s F1r B1s F2r B2s ");
}

TEST(CoreTest, AssignmentsCarryLayersEdgesAndSecrets) {
  FakeCluster cluster;
  cluster.Start(3);
  for (int i = 0; i < 3; ++i) cluster.stage(i).answers_assignment = (i != 2);
  NewJob job = TinyJob(3, 4);
  job.spec.pipeline.partition = {{1, 2, 1}};
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  ASSERT_EQ(cluster.Job().state(), Job::STATE_ASSEMBLING);
  const v1::Assignment& middle = cluster.stage(1).assignment();
  EXPECT_EQ(middle.rank(), 1);
  EXPECT_EQ(middle.chunks(0).first_block(), 1);
  EXPECT_EQ(middle.chunks(0).end_block(), 3);
  EXPECT_FALSE(middle.has_data());
  EXPECT_EQ(middle.edges_size(), 4);  // Activation and gradient, both sides.
  // Tied edges join the first and the last.
  EXPECT_EQ(cluster.stage(0).assignment().edges_size(), 4);
  EXPECT_EQ(cluster.stage(0).assignment().data().train_path(),
            "/jobs/tiny/train.txt");
  EXPECT_TRUE(cluster.stage(2).assignment().has_data());
  EXPECT_EQ(middle.epoch_secret().size(), 32);
  EXPECT_EQ(middle.epoch_secret(),
            cluster.stage(0).assignment().epoch_secret());
  for (const v1::EdgeAssignment& edge : middle.edges()) {
    EXPECT_TRUE(edge.peer_name() == "stage-0" || edge.peer_name() == "stage-2");
    EXPECT_FALSE(edge.peer_address().empty());
    EXPECT_GE(edge.capacity(), 1);
  }
}

TEST(CoreTest, OnlyFirstAndLastStageAreToldToReadData) {
  FakeCluster cluster;
  cluster.Start(3);
  ASSERT_OK(cluster.Create(TinyJob(3, 2)).status());
  cluster.Run();
  EXPECT_TRUE(cluster.stage(0).check().has_data());
  EXPECT_FALSE(cluster.stage(1).check().has_data());
  EXPECT_TRUE(cluster.stage(2).check().has_data());
}

TEST(CoreTest, MetricsHaveALineACommittedStep) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).sequences = cluster.stage(1).sequences = 6;
  NewJob job = TinyJob(2, 4, 5);
  job.spec.lr_schedule = {.kind = spec::LrKind::kConstant, .warmup_steps = 2};
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  const std::vector<json> lines = Lines(cluster.File("metrics.jsonl"));
  ASSERT_EQ(lines.size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lines[i]["step"], i + 1);
  // 4 micro-batches of 10 nats over 4 tokens each.
  EXPECT_EQ(lines[0]["loss"], 2.5);
  EXPECT_EQ(lines[0]["tokens"], 16);
  EXPECT_EQ(lines[0]["lr"], 0.5e-3);
  EXPECT_EQ(lines[1]["lr"], 1e-3);
  EXPECT_EQ(lines[1]["epoch"], 0);  // Sample 4 of 6.
  EXPECT_EQ(lines[2]["epoch"], 1);  // Sample 8.
  EXPECT_EQ(lines[0]["skipped"], false);
  EXPECT_FALSE(lines[0].contains("validation_loss"));
  EXPECT_TRUE(lines[3]["bubble_rate"].is_null());  // No full timings.
  const std::set<std::string> keys = {
      "step",        "time",         "epoch",
      "loss",        "tokens",       "lr",
      "grad_norm",   "step_seconds", "tokens_per_second",
      "bubble_rate", "skipped",      "nonfinite"};
  std::set<std::string> found;
  for (const auto& item : lines[0].items()) found.insert(item.key());
  EXPECT_EQ(found, keys);
}

TEST(CoreTest, EvaluationsComeAfterTheirStepsAndTheLast) {
  FakeCluster cluster;
  cluster.Start(2);
  NewJob job = TinyJob(2, 4, 5);
  job.spec.data.validation = {{.share_millionths = 100000}};
  job.spec.evaluate = {{.every = 2, .batches = 2}};
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  ASSERT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
  std::string order;
  for (const v1::StepCommands& c : cluster.stage(0).commands_seen()) {
    const bool train = c.kind() == v1::StepCommands::KIND_TRAIN;
    order += (train ? "T" : "E") + std::to_string(c.step()) + " ";
    if (!train) {
      EXPECT_EQ(c.commands_size(), 8);  // 2 * 4 of 10 sequences.
    }
  }
  EXPECT_EQ(order, "T1 T2 E2 T3 T4 E4 T5 E5 ");
  const std::vector<json> lines = Lines(cluster.File("metrics.jsonl"));
  EXPECT_EQ(lines[1]["validation_loss"], 2.0);
  EXPECT_FALSE(lines[2].contains("validation_loss"));
  EXPECT_EQ(lines[4]["validation_loss"], 2.0);
}

TEST(CoreTest, EpochsBecomeStepsWhenTheDataAreSeen) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).sequences = cluster.stage(1).sequences = 10;
  NewJob job = TinyJob(2, 4);
  job.spec.steps.reset();
  job.spec.epochs = 3;
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  EXPECT_EQ(cluster.Job().steps(), 7);  // 30 / 4.
  EXPECT_THAT(cluster.File("job.yaml"), HasSubstr("steps: 7"));
  EXPECT_THAT(cluster.File("job.yaml"), HasSubstr("decay_steps: 7"));
  EXPECT_EQ(cluster.Job().step(), 7);
}

TEST(CoreTest, MasksThatHaveNoEffectAreSaidOnce) {
  FakeCluster cluster;
  cluster.Start(2);
  cluster.stage(0).masked_line = cluster.stage(1).masked_line = "t.jsonl:3";
  NewJob job = TinyJob(2, 4);
  job.spec.data.validation = {{.share_millionths = 100000}};  // Its end.
  ASSERT_OK(cluster.Create(job).status());
  cluster.Run();
  const auto said = cluster.Occurrences("IGNORED");
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].severity(), v1::Occurrence::SEVERITY_WARNING);
  EXPECT_THAT(said[0].message(),
              HasSubstr("data.train: t.jsonl:3: its attention_mask"));
  EXPECT_EQ(cluster.Job().state(), Job::STATE_SUCCEEDED);
}

TEST(CoreTest, AutoDeviceIsSaidAndResolved) {
  FakeCluster cluster;
  cluster.Start(2);
  NewJob job = TinyJob(2, 2);
  job.spec.device = spec::DeviceKind::kAuto;
  ASSERT_OK_AND_ASSIGN(const Job created, cluster.Create(job));
  EXPECT_THAT(created.notes(),
              ElementsAre("device: cpu (auto; cuda where every chosen stage "
                          "has it)"));
  cluster.Run();
  const auto notes = cluster.Occurrences("NOTE");
  ASSERT_EQ(notes.size(), 2);
  EXPECT_EQ(notes[1].message(), "device: cpu, which all chosen stages have");
  EXPECT_THAT(cluster.File("job.yaml"), HasSubstr("device: cpu"));
}

TEST(CoreTest, TheSummaryNamesTheProtocolThatAllCouldSpeak) {
  Options options;
  options.registry.highest_protocol = 4;
  FakeCluster cluster(options);
  cluster.Start(0);
  for (int i = 0; i < 2; ++i) {
    FakeStage& stage = cluster.AddStage(
        "stage-" + std::to_string(i),
        "00000000-0000-4000-8000-00000000000" + std::to_string(i));
    stage.protocol = i == 0 ? 5 : 3;
    Actions actions;
    ASSERT_OK(cluster.core
                  ->RegisterStage(stage.Registration(), cluster.now(), actions)
                  .status());
    cluster.Connect(stage);
  }
  ASSERT_OK(cluster.Create(TinyJob(2, 2)).status());
  cluster.Run();
  EXPECT_EQ(json::parse(cluster.File("summary.json"))["versions"]["protocol"],
            3);
}

TEST(CoreTest, TheSummaryHasWhatInterfacesSays) {
  FakeCluster cluster;
  cluster.Start(2);
  ASSERT_OK(cluster.Create(TinyJob(2, 4, 12)).status());
  cluster.Run();
  const json summary = json::parse(cluster.File("summary.json"));
  EXPECT_EQ(summary["state"], "SUCCEEDED");
  EXPECT_TRUE(summary["reason"].is_null());
  EXPECT_EQ(summary["steps"], 12);
  EXPECT_EQ(summary["tokens"], 12 * 16);
  EXPECT_EQ(summary["final_loss"], 2.5);
  EXPECT_EQ(summary["weights_sha256"].get<std::string>().size(), 64);
  EXPECT_EQ(summary["stages"].size(), 2);
  EXPECT_EQ(summary["stages"][0]["chunks"][0]["embedding"], true);
  EXPECT_EQ(summary["stages"][0]["peak_in_flight"], 1);
  EXPECT_EQ(summary["fingerprint"].get<std::string>().size(), 64);
  EXPECT_EQ(summary["versions"]["numerics"], "cpu/avx2/1/0");
  EXPECT_GT(summary["bubble_rate"]["predicted"], 0);
  const json pipeline = summary["pipeline"];
  EXPECT_EQ(pipeline["schedule"], "1f1b");
  EXPECT_EQ(pipeline["ranks"], 2);
  EXPECT_EQ(pipeline["chunks"], 1);
  EXPECT_EQ(pipeline["micro_batches"], 4);
  EXPECT_EQ(pipeline["closed_form"]["formula"], "(K−1)/(M+K−1)");
  EXPECT_DOUBLE_EQ(pipeline["closed_form"]["bubble_rate"], 1.0 / 5);
  EXPECT_EQ(summary["recoveries"].size(), 0);
  EXPECT_EQ(summary["name"], "tiny");
  EXPECT_EQ(summary["id"], cluster.Job().id());
  // Nothing was evaluated, and no time passed; see summary_test.
  EXPECT_TRUE(summary.at("validation_loss").is_null());
  EXPECT_TRUE(summary.at("tokens_per_second").is_null());
  EXPECT_EQ(summary["step_seconds"]["p50"], 0);
  EXPECT_EQ(summary["step_seconds"]["p90"], 0);
  EXPECT_TRUE(summary.at("realisation").is_null());
  const json trace = json::parse(cluster.File("trace.json"));
  // Steps 1, 2, 3, 10 and 12 carried full timings: 16 ops each, 2 names.
  EXPECT_EQ(trace["traceEvents"].size(), 5 * 16 + 2);
}

TEST(CoreTest, TheModelIsIndexedWhenItIsInShards) {
  FakeCluster one;
  one.Start(1);
  ASSERT_OK(one.Create(TinyJob(1, 1)).status());
  one.Run();
  EXPECT_EQ(one.stage(0).end().shard_file(), "model.safetensors");
  EXPECT_EQ(one.stage(0).end().model_directory(),
            one.stage(0).probe().directory());
  EXPECT_EQ(one.File("model/model.safetensors.index.json"), "");

  FakeCluster two;
  two.Start(2);
  ASSERT_OK(two.Create(TinyJob(2, 1)).status());
  two.Run();
  const json index =
      json::parse(two.File("model/model.safetensors.index.json"));
  EXPECT_EQ(index["weight_map"]["p0"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["p50"], "model-00002-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"].size(), 52);  // 2 + 4 * 12 + 2.
  // The same weights have the same digest, however they are cut.
  EXPECT_EQ(json::parse(one.File("summary.json"))["weights_sha256"],
            json::parse(two.File("summary.json"))["weights_sha256"]);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
