#include "coordinator/dispatch/summary.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "coordinator/planner/plan.h"
#include "coordinator/spec/job_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::dispatch {
namespace {

TEST(SummaryTest, ShardsAreNamedAsHuggingFaceDoes) {
  EXPECT_EQ(ShardFile(0, 1), "model.safetensors");
  EXPECT_EQ(ShardFile(0, 4), "model-00001-of-00004.safetensors");
  EXPECT_EQ(ShardFile(11, 12), "model-00012-of-00012.safetensors");
}

TEST(SummaryTest, TheIndexIsThatOfSavePretrained) {
  std::vector<v1::EndReport> ends(2);
  ends[0].set_shard_file(ShardFile(0, 2));
  ends[0].add_shard_tensors("transformer.wte.weight");
  ends[1].set_shard_file(ShardFile(1, 2));
  ends[1].add_shard_tensors("transformer.ln_f.weight");
  ends[1].add_shard_tensors("transformer.h.0.ln_1.weight");
  EXPECT_EQ(ShardIndex(ends, 40), R"({
  "metadata": {
    "total_size": 40
  },
  "weight_map": {
    "transformer.h.0.ln_1.weight": "model-00002-of-00002.safetensors",
    "transformer.ln_f.weight": "model-00002-of-00002.safetensors",
    "transformer.wte.weight": "model-00001-of-00002.safetensors"
  }
}
)");
}

// Made on the core's loop: of a time that grows with the square of the names
// this test would end by its timeout.
TEST(ShardIndexTest, ManyTensorsAreListedInTheOrderOfTheirNames) {
  constexpr int kTensors = 200000;
  std::vector<v1::EndReport> ends(2);
  for (int i = 0; i < kTensors; ++i) {
    v1::EndReport& end = ends[i % 2];
    end.set_shard_file(ShardFile(i % 2, 2));
    end.add_shard_tensors(absl::StrFormat("transformer.h.%06d.weight", i));
  }
  const std::string index = ShardIndex(ends, 1);
  const size_t first = index.find("transformer.h.000000.weight");
  const size_t last = index.find("transformer.h.199999.weight");
  ASSERT_NE(last, std::string::npos);
  EXPECT_LT(first, index.find("transformer.h.000001.weight"));
  EXPECT_EQ(std::count(index.begin(), index.end(), '\n'), kTensors + 7);
}

TEST(FingerprintTest, ChangesWithEachPartOfTheSpecAndWithTheData) {
  using Change = std::function<void(spec::JobSpec&)>;
  const spec::JobSpec spec = TinyJob(2, 4).spec;
  std::set<std::string> seen = {Fingerprint(spec, "d")};
  EXPECT_EQ(seen.begin()->size(), 64);
  const std::vector<Change> changes = {
      [](spec::JobSpec& s) { s.name = "other"; },
      [](spec::JobSpec& s) { s.model.layers = 5; },
      [](spec::JobSpec& s) { s.data.sequence_length = 8; },
      [](spec::JobSpec& s) { s.batch.micro_batch = 2; },
      [](spec::JobSpec& s) { s.pipeline.stages = 3; },
      [](spec::JobSpec& s) {
        s.pipeline.partition = {{1, 3}};
      },
      [](spec::JobSpec& s) { s.optimizer.lr *= 2; },
      [](spec::JobSpec& s) { s.lr_schedule.warmup_steps = 7; },
      [](spec::JobSpec& s) { s.steps = 4; },
      [](spec::JobSpec& s) { s.seed = 2; },
      [](spec::JobSpec& s) { s.evaluate.emplace(); },
      [](spec::JobSpec& s) { s.device = spec::DeviceKind::kCpu; },
      [](spec::JobSpec& s) { s.threads_per_stage = 3; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    spec::JobSpec changed = spec;
    changes[i](changed);
    EXPECT_TRUE(seen.insert(Fingerprint(changed, "d")).second) << i;
  }
  EXPECT_TRUE(seen.insert(Fingerprint(spec, "e")).second);
}

TEST(FingerprintTest, IsOfTheSameJobWhereverItsFilesAre) {
  const spec::JobSpec spec = TinyJob(2, 4).spec;
  spec::JobSpec moved = spec;
  moved.data.train = "/elsewhere/train.txt";
  EXPECT_EQ(Fingerprint(moved, "d"), Fingerprint(spec, "d"));
  moved.model.from = "/models/a";
  moved.checkpoint.dir = "/checkpoints";
  spec::JobSpec again = moved;
  again.model.from = "/models/b";
  again.checkpoint.dir = "/other";
  EXPECT_EQ(Fingerprint(again, "d"), Fingerprint(moved, "d"));
}

// Two ranks, two micro-batches: F 1 s and B 2 s make a step of 9 s.
class SummaryNumbersTest : public ::testing::Test {
 protected:
  SummaryNumbersTest()
      : crew_{.members = {{.name = "a", .host = "ha"},
                          {.name = "b", .host = "hb"}}} {
    planner::PlanRequest request;
    request.model = {.family = planner::Family::kGpt2,
                     .layers = 2,
                     .width = 8,
                     .heads = 2,
                     .kv_heads = 2,
                     .head_dim = 4,
                     .ffn_width = 32,
                     .context = 8,
                     .vocab = 16};
    request.batch = {.micro_batch = 1, .sequence_length = 8};
    request.ranks = 2;
    request.micro_batches = 2;
    plan_ = *planner::MakePlan(request);
    job_.set_name("tiny");
    job_.set_id("tiny-00001");
    job_.set_state(v1::Job::STATE_SUCCEEDED);
    job_.set_step(3);
  }

  // A step of so many seconds in which each rank ran its four commands.
  void Commit(double seconds) {
    CommittedStep step;
    step.result.step = accounting_.steps() + 1;
    step.result.loss_sum = 24;
    step.result.valid_tokens = 16;
    for (int rank = 0; rank < 2; ++rank) {
      v1::StepReport report;
      int64_t now = 0;
      for (const v1::Op op :
           {v1::OP_FORWARD, v1::OP_FORWARD, v1::OP_BACKWARD, v1::OP_BACKWARD}) {
        v1::OpTiming& timing = *report.add_timings();
        timing.set_op(op);
        timing.set_stage(rank);
        timing.set_start_ns(now);
        now += op == v1::OP_FORWARD ? 1000000000 : 2000000000;
        timing.set_end_ns(now);
      }
      report.set_busy_ns(now);
      report.set_span_ns(now);
      report.set_peak_activation_bytes(100 + rank);
      report.set_peak_in_flight(2 - rank);
      step.reports.push_back(
          {.report = report, .arrived = now_ + absl::Seconds(seconds)});
    }
    step.started = now_;
    now_ += absl::Seconds(seconds);
    step.committed = now_;
    accounting_.Commit(step);
  }
  std::optional<SimulatedStep> Simulated() const {
    const auto costs = accounting_.MeasuredCosts(2);
    if (!costs.has_value()) return std::nullopt;
    return SimulateAsMeasured(plan_, *costs, accounting_.step_seconds()->p50);
  }
  nlohmann::json Make() const {
    const auto simulated = Simulated();
    return nlohmann::json::parse(
        Summary({.job = job_,
                 .crew = crew_,
                 .plan = &plan_,
                 .accounting = &accounting_,
                 .simulated = simulated.has_value() ? &*simulated : nullptr}));
  }

  v1::Job job_;
  Crew crew_;
  planner::Plan plan_;
  common::time::MonotonicTime now_;
  Accounting accounting_{/*ranks=*/2, /*batch=*/2, /*sequences=*/100};
};

TEST_F(SummaryNumbersTest, WhatWasMeasuredIsSaidToTheDigit) {
  for (const double seconds : {40, 30, 12, 10, 24}) Commit(seconds);
  const nlohmann::json summary = Make();
  EXPECT_EQ(summary["tokens"], 80);
  EXPECT_EQ(summary["final_loss"], 1.5);
  EXPECT_NEAR(summary["tokens_per_second"], 80.0 / 116, 1e-12);
  EXPECT_EQ(summary["step_seconds"]["p50"], 12);
  EXPECT_EQ(summary["step_seconds"]["p90"], 24);
  // Half of a step of 12 s nobody works.
  EXPECT_NEAR(summary["bubble_rate"]["measured"], 0.5, 1e-9);
  // A step could have taken 9 s.
  EXPECT_NEAR(summary["realisation"], 0.75, 1e-9);
  for (int rank = 0; rank < 2; ++rank) {
    const nlohmann::json stage = summary["stages"][rank];
    EXPECT_NEAR(stage["busy_seconds"], 30, 1e-9);
    EXPECT_EQ(stage["peak_in_flight"], 2 - rank);
    EXPECT_EQ(stage["peak_activation_bytes"]["measured"], 100 + rank);
  }
}

TEST_F(SummaryNumbersTest, ThePredictedTimelineIsTheScheduleWithMeasuredTimes) {
  Commit(12);
  const auto simulated = Simulated();
  ASSERT_TRUE(simulated.has_value());
  EXPECT_EQ(PredictedTimeline(plan_.program, *simulated),
            "{\"step_seconds\":9.0,\"measured_step_seconds\":12.0,"
            "\"realisation\":0.75,\"bubble_rate\":0.3333333333333333,"
            "\"span_bubble_rate\":0.3333333333333333,\"ranks\":[\n"
            "{\"rank\":0,\"busy_seconds\":6.0,\"commands\":"
            "[[\"0F0\",0.0,1.0],[\"0F1\",1.0,2.0],"
            "[\"0B0\",4.0,6.0],[\"0B1\",7.0,9.0]]},\n"
            "{\"rank\":1,\"busy_seconds\":6.0,\"commands\":"
            "[[\"1F0\",1.0,2.0],[\"1B0\",2.0,4.0],"
            "[\"1F1\",4.0,5.0],[\"1B1\",5.0,7.0]]}\n]}\n");
}

TEST_F(SummaryNumbersTest, OfAStepThatTookNoTimeNothingIsPredicted) {
  Commit(0);
  EXPECT_FALSE(Simulated().has_value());
}

TEST_F(SummaryNumbersTest, WhatWasNotMeasuredIsNull) {
  const nlohmann::json summary = Make();
  EXPECT_EQ(summary["tokens"], 0);
  for (const char* key : {"final_loss", "validation_loss", "tokens_per_second",
                          "realisation", "weights_sha256", "fingerprint"}) {
    EXPECT_TRUE(summary.at(key).is_null()) << key;
  }
  EXPECT_TRUE(summary["step_seconds"].at("p50").is_null());
  EXPECT_TRUE(summary["bubble_rate"].at("measured").is_null());
  EXPECT_TRUE(summary["stages"][0].at("peak_in_flight").is_null());
}

TEST(SummaryTest, AllOfARanksMemoryIsCountedOnce) {
  v1::MemoryBytes memory;
  memory.set_parameters(1);
  memory.set_gradients(20);
  memory.set_optimizer(300);
  memory.set_activation_slots(4000);
  memory.set_workspace(50000);
  memory.set_transfer_slots(600000);
  EXPECT_EQ(TotalBytes(memory), 654321);
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
