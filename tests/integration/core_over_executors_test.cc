// The coordinator's core, planner and barrier drive real executors: a whole job
// without gRPC. The same weights come out for every cut, schedule, recompute
// setting and device thread; what was predicted is what was measured.
#include <memory>
#include <string>

#include "coordinator/schedule/named_schedules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/device/cpu/factory.h"
#include "server/device/reference/factory.h"
#include "tests/integration/local_cluster.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::testing {
namespace {

using coordinator::dispatch::NewJob;
using nlohmann::json;
namespace schedule = coordinator::schedule;
namespace spec = coordinator::spec;

std::unique_ptr<server::device::Device> Reference() {
  return server::device::reference::CreateReferenceDevice().value();
}

NewJob TinyJob(int stages, int64_t micro_batch, int64_t micro_batches) {
  NewJob job;
  job.spec.name = "tiny";
  job.spec.model = {.family = spec::ModelFamily::kGpt2,
                    .layers = 3,
                    .width = 12,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_dim = 6,
                    .ffn_width = 20,
                    .context = 8,
                    .vocab = 29,
                    .dropout = 0.1};
  job.spec.data.train = "made-up.bin";
  job.spec.data.sequence_length = 8;
  job.spec.data.validation = {{.share_millionths = 100000}};
  job.spec.evaluate = {{.every = 3, .batches = 2}};
  job.spec.batch = {.global = micro_batch * micro_batches,
                    .micro_batch = micro_batch,
                    .micro_batches = micro_batches};
  job.spec.pipeline.stages = stages;
  job.spec.lr_schedule = {
      .kind = spec::LrKind::kCosine, .warmup_steps = 2, .min_ratio = 0.1};
  job.spec.optimizer.lr = 1e-2;
  job.spec.steps = 6;
  return job;
}

struct Outcome {
  json summary;
  std::string metrics;
};

Outcome MustRun(const NewJob& job, LocalCluster::Options options = {}) {
  if (!options.device) options.device = Reference;
  LocalCluster cluster(static_cast<int>(*job.spec.pipeline.stages), options);
  const absl::StatusOr<v1::Job> ended = cluster.Run(job);
  EXPECT_TRUE(ended.ok()) << ended.status();
  if (!ended.ok()) return {};
  EXPECT_EQ(ended->state(), v1::Job::STATE_SUCCEEDED)
      << ended->cause().message();
  return {json::parse(ended->summary_json()), cluster.metrics()};
}

// The lines without times.
std::string Numbers(const std::string& metrics) {
  std::string numbers;
  size_t begin = 0;
  for (size_t end; (end = metrics.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    json line = json::parse(metrics.substr(begin, end - begin));
    for (const char* key :
         {"time", "step_seconds", "tokens_per_second", "bubble_rate"}) {
      line.erase(key);
    }
    numbers += line.dump() + "\n";
  }
  return numbers;
}

TEST(CoreOverExecutorsTest, TheSameBitsForEveryCutScheduleAndRecompute) {
  for (const int64_t micro_batches : {1, 4}) {
    const Outcome whole = MustRun(TinyJob(1, 2, micro_batches));
    const std::string weights = whole.summary["weights_sha256"];
    ASSERT_EQ(weights.size(), 64);
    for (const int stages : {2, 3, 5}) {
      for (const auto schedule :
           {spec::ScheduleKind::kNaive, spec::ScheduleKind::kGpipe,
            spec::ScheduleKind::k1F1B, spec::ScheduleKind::kZbH2}) {
        for (const auto recompute :
             {spec::Recompute::kNone, spec::Recompute::kFull}) {
          NewJob job = TinyJob(stages, 2, micro_batches);
          job.spec.pipeline.schedule = schedule;
          job.spec.pipeline.recompute = recompute;
          const Outcome outcome =
              MustRun(job, {.max_delay = absl::Microseconds(200),
                            .seed = static_cast<uint64_t>(stages)});
          EXPECT_EQ(outcome.summary["weights_sha256"], weights)
              << "K " << stages << " M " << micro_batches;
          EXPECT_EQ(Numbers(outcome.metrics), Numbers(whole.metrics));
        }
      }
    }
  }
}

// Two chunks a rank, down and up or round and round; evaluation goes through
// them too. (V: the first and the last stage, so both ends of the data and of
// the tied embedding, are on rank 0.)
TEST(CoreOverExecutorsTest, TheSameBitsForEverySchedule) {
  NewJob whole = TinyJob(1, 1, 6);
  whole.spec.model.layers = 4;
  const Outcome expected = MustRun(whole);
  for (const schedule::NamedSchedule& named : schedule::kNamedSchedules) {
    SCOPED_TRACE(std::string(named.name));
    NewJob job = whole;
    job.spec.pipeline.stages = 3;
    job.spec.pipeline.schedule = named.value;
    job.spec.pipeline.chunks = named.default_chunks;
    const Outcome outcome = MustRun(job);
    if (outcome.summary.is_null()) continue;
    EXPECT_EQ(outcome.summary["weights_sha256"],
              expected.summary["weights_sha256"]);
    EXPECT_EQ(Numbers(outcome.metrics), Numbers(expected.metrics));
    for (const json& stage : outcome.summary["stages"]) {
      EXPECT_EQ(stage["peak_bytes"]["predicted"],
                stage["peak_bytes"]["measured"]);
      EXPECT_EQ(stage["peak_activation_bytes"]["predicted"],
                stage["peak_activation_bytes"]["measured"]);
    }
  }
}

TEST(CoreOverExecutorsTest, PeaksAreThoseOfTheSchedule) {
  for (const auto schedule :
       {spec::ScheduleKind::kGpipe, spec::ScheduleKind::k1F1B}) {
    NewJob job = TinyJob(3, 1, 5);
    job.spec.pipeline.schedule = schedule;
    const Outcome outcome = MustRun(job);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(outcome.summary["stages"][rank]["peak_in_flight"],
                schedule == spec::ScheduleKind::kGpipe ? 5 : 3 - rank);
    }
  }
}

TEST(CoreOverExecutorsTest, TheCpuDeviceKeepsItsBitsOverCutsAndThreads) {
  std::string weights;
  for (const int stages : {1, 2, 4}) {
    for (const int threads : {1, 2}) {
      const auto device = [threads] {
        return server::device::cpu::CreateCpuDevice({.threads = threads})
            .value();
      };
      const Outcome outcome = MustRun(TinyJob(stages, 2, 2),
                                      {.device = device, .threads = threads});
      const std::string now = outcome.summary["weights_sha256"];
      if (weights.empty()) weights = now;
      EXPECT_EQ(now, weights) << "K " << stages << " threads " << threads;
      for (const json& stage : outcome.summary["stages"]) {
        EXPECT_EQ(stage["peak_bytes"]["predicted"],
                  stage["peak_bytes"]["measured"]);
      }
    }
  }
}

TEST(CoreOverExecutorsTest, TheLossFallsAndTheReportIsWhole) {
  NewJob job = TinyJob(2, 2, 2);
  job.spec.model.dropout = 0;
  job.spec.steps = 60;
  // One pass is 4 steps: the data are learned by heart.
  const Outcome outcome = MustRun(job, {.device = Reference, .sequences = 16});
  const std::string first =
      outcome.metrics.substr(0, outcome.metrics.find('\n'));
  EXPECT_GT(json::parse(first)["loss"].get<double>(),
            outcome.summary["final_loss"].get<double>() + 0.5);
  EXPECT_EQ(outcome.summary["steps"], 60);
  EXPECT_TRUE(outcome.summary["validation_loss"].is_number());
  EXPECT_GT(outcome.summary["realisation"].get<double>(), 0);
  EXPECT_GT(outcome.summary["bubble_rate"]["measured"].get<double>(), 0);
}

}  // namespace
}  // namespace penstock::testing
