// What the planner predicts with formulas of its own is what a stage daemon
// allocates, to the byte: every shape, cut, schedule and device.
// The planner knows nothing of server/; this holds them together.
#include <memory>
#include <random>
#include <string>

#include "coordinator/dispatch/assembly.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/packed_weights.h"
#include "coordinator/planner/plan.h"
#include "gtest/gtest.h"
#include "server/device/cpu/factory.h"
#include "server/device/cpu/isa.h"
#include "server/device/reference/factory.h"
#include "server/executor/executor.h"
#include "server/executor/stage_assignment.h"

namespace penstock {
namespace {

using coordinator::dispatch::AssignmentFor;
using coordinator::dispatch::Crew;
using coordinator::dispatch::NewJob;
using coordinator::dispatch::Options;
using coordinator::planner::Plan;
using coordinator::planner::RankMemory;
namespace spec = coordinator::spec;

// Odd sizes on purpose: nothing may rest on powers of two.
NewJob RandomJob(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  NewJob job;
  spec::ModelSpec& model = job.spec.model;
  const bool llama = draw(0, 1) == 1;
  model.family = llama ? spec::ModelFamily::kLlama : spec::ModelFamily::kGpt2;
  model.layers = draw(1, 6);
  model.kv_heads = draw(1, 3);
  model.heads = llama ? model.kv_heads * draw(1, 3) : model.kv_heads;
  model.head_dim = 2 * draw(1, 9);
  model.width = llama ? draw(3, 40) : model.heads * model.head_dim;
  model.ffn_width = draw(5, 90);
  model.context = draw(4, 20);
  model.vocab = draw(7, 300);
  model.tied_embeddings = draw(0, 1) == 1;
  model.dropout = draw(0, 2) == 0 ? 0.1 : 0;
  job.spec.data.train = "/data/train.bin";
  job.spec.data.sequence_length = draw(1, model.context);
  const int64_t micro_batches = draw(1, 7);
  job.spec.batch = {
      .global = 0, .micro_batch = draw(1, 3), .micro_batches = micro_batches};
  job.spec.batch.global = *job.spec.batch.micro_batch * micro_batches;
  job.spec.pipeline.stages = draw(1, model.layers + 2);
  const spec::ScheduleKind kinds[] = {spec::ScheduleKind::kNaive,
                                      spec::ScheduleKind::kGpipe,
                                      spec::ScheduleKind::k1F1B};
  job.spec.pipeline.schedule = kinds[draw(0, 2)];
  job.spec.pipeline.recompute =
      draw(0, 1) == 1 ? spec::Recompute::kFull : spec::Recompute::kNone;
  if (draw(0, 2) == 0) {
    job.spec.optimizer.kind = spec::OptimizerKind::kSgd;
    job.spec.optimizer.momentum = draw(0, 1) == 1 ? 0.9 : 0;
  }
  return job;
}

// Compares every rank of a random job's plan.
void Check(server::device::Device& device, const NewJob& job) {
  auto request = coordinator::dispatch::PlanRequestOf(job);
  ASSERT_TRUE(request.ok()) << request.status();
  request->packed_bytes =
      coordinator::planner::PackedBytesOf(device.numerics_id());
  const auto plan = coordinator::planner::MakePlan(*request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Crew crew{.numerics_id = device.numerics_id()};
  for (int rank = 0; rank < request->ranks; ++rank) {
    crew.names.push_back("stage-" + std::to_string(rank));
    crew.hosts.push_back("host");
    crew.data_addresses.push_back("127.0.0.1:1");
  }
  const Options options;
  for (int rank = 0; rank < request->ranks; ++rank) {
    const auto assignment =
        server::executor::DecodeAssignment(AssignmentFor({.spec = job.spec,
                                                          .job_id = "job",
                                                          .plan = *plan,
                                                          .crew = crew,
                                                          .epoch_secret = "s",
                                                          .options = options},
                                                         rank));
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    const v1::MemoryBytes real =
        server::executor::Executor::PredictMemory(device.ops(), *assignment);
    const RankMemory& predicted = plan->memory[rank];
    EXPECT_EQ(predicted.parameters, real.parameters());
    EXPECT_EQ(predicted.gradients, real.gradients());
    EXPECT_EQ(predicted.optimizer, real.optimizer());
    EXPECT_EQ(predicted.activation_slots, real.activation_slots());
    EXPECT_EQ(predicted.workspace, real.workspace());
    EXPECT_EQ(predicted.transfer_slots, real.transfer_slots());
  }
}

void CheckMany(server::device::Device& device, unsigned seed, int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(device.numerics_id() + " seed " + std::to_string(seed) +
                 " round " + std::to_string(round));
    Check(device, RandomJob(random));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(MemoryPredictionTest, EqualsTheReferenceDevices) {
  const auto device = server::device::reference::CreateReferenceDevice();
  ASSERT_TRUE(device.ok());
  CheckMany(**device, 1, 300);
}

TEST(MemoryPredictionTest, EqualsTheCpuDevicesOnEveryLevel) {
  for (const auto isa : server::device::cpu::SupportedIsas()) {
    const auto device =
        server::device::cpu::CreateCpuDevice({.threads = 1, .max_isa = isa});
    ASSERT_TRUE(device.ok()) << device.status();
    ASSERT_NE(coordinator::planner::PackedBytesOf((*device)->numerics_id()),
              nullptr)
        << (*device)->numerics_id();
    CheckMany(**device, 2, 100);
  }
}

}  // namespace
}  // namespace penstock
