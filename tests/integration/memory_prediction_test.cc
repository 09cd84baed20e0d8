// What the planner predicts with formulas of its own is what a stage daemon
// allocates, to the byte: every shape, cut, schedule and device.
// The planner knows nothing of server/; this holds them together.
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "common/status/status_macros.h"
#include "common/time/real_clock.h"
#include "coordinator/dispatch/assembly.h"
#include "coordinator/dispatch/spec_messages.h"
#include "coordinator/planner/device_sizes.h"
#include "coordinator/planner/plan.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "gtest/gtest.h"
#include "server/device/cpu/factory.h"
#include "server/device/cpu/isa.h"
#include "server/device/reference/factory.h"
#include "server/executor/executor.h"
#include "server/executor/executor_listener.h"
#include "server/executor/measured_memory.h"
#include "server/executor/stage_assignment.h"
#include "server/model/parameters.h"
#include "server/transport/inprocess/hub.h"
#include "tests/server/executor/pipeline.h"

namespace penstock {
namespace {

using coordinator::dispatch::AssignmentFor;
using coordinator::dispatch::Crew;
using coordinator::dispatch::NewJob;
using coordinator::dispatch::Options;
using coordinator::planner::Plan;
using coordinator::planner::RankMemory;
namespace schedule = coordinator::schedule;
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
  // One that has a meaning for so many micro-batches and layers.
  for (bool runs = false; !runs;) {
    const auto& named = schedule::kNamedSchedules[draw(
        0, std::size(schedule::kNamedSchedules) - 1)];
    const int chunks = named.fixed_chunks.value_or(draw(1, 3));
    const schedule::Shape shape{
        .ranks = static_cast<int>(*job.spec.pipeline.stages),
        .chunks = chunks,
        .micro_batches = static_cast<int>(micro_batches)};
    runs = shape.ranks * shape.chunks <= model.layers + 2 &&
           schedule::Generate(named.name, shape).ok();
    job.spec.pipeline.schedule = named.value;
    job.spec.pipeline.chunks = chunks;
  }
  job.spec.pipeline.recompute =
      draw(0, 1) == 1 ? spec::Recompute::kFull : spec::Recompute::kNone;
  if (draw(0, 2) == 0) {
    job.spec.optimizer.kind = spec::OptimizerKind::kSgd;
    job.spec.optimizer.momentum = draw(0, 1) == 1 ? 0.9 : 0;
  }
  return job;
}

void ExpectPredicted(const RankMemory& predicted, const v1::MemoryBytes& real) {
  EXPECT_EQ(predicted.parameters, real.parameters());
  EXPECT_EQ(predicted.gradients, real.gradients());
  EXPECT_EQ(predicted.optimizer, real.optimizer());
  EXPECT_EQ(predicted.activation_slots, real.activation_slots());
  EXPECT_EQ(predicted.workspace, real.workspace());
  EXPECT_EQ(predicted.transfer_slots, real.transfer_slots());
}

// Nothing is reported: no command is run.
class NoReports final : public server::executor::ExecutorListener {
 public:
  void OnStepReport(const v1::StepReport&) override {}
  void OnApplyAck(const v1::ApplyAck&) override {}
  void OnEvalReport(const v1::EvalReport&) override {}
  void OnEndReport(const v1::EndReport&) override {}
  void OnFailure(const v1::StageFailure&) override {}
};

// What a stage daemon does on an assignment, and what its device counted.
absl::StatusOr<v1::MemoryBytes> Assemble(
    server::device::Device& device,
    const server::executor::StageAssignment& assignment) {
  using server::model::ParameterStore;
  ASSIGN_OR_RETURN(const auto parameters,
                   ParameterStore::Create(device, assignment.parameters()));
  ASSIGN_OR_RETURN(const auto stream, device.CreateStream());
  RETURN_IF_ERROR(parameters->Load(
      *stream,
      [](const auto&, absl::Span<float> values) {
        absl::c_fill(values, 0.5f);
        return absl::OkStatus();
      },
      0, absl::InfiniteFuture()));
  server::transport::inprocess::Hub hub({});
  ASSIGN_OR_RETURN(auto transport,
                   hub.Join("me", assignment.transport(1, "s")));
  testing::MadeUpData source(assignment.shape.seq, assignment.model.vocab);
  const common::time::RealClock clock;
  NoReports listener;
  ASSIGN_OR_RETURN(const auto executor,
                   server::executor::Executor::Create(
                       assignment, {.epoch = 1, .stage_name = "me"},
                       {.device = &device,
                        .parameters = parameters.get(),
                        .transport = std::move(transport),
                        .source = &source,
                        .clock = &clock,
                        .listener = &listener}));
  return server::executor::PeakMemory(device.memory());
}

using MakeDevice =
    std::function<absl::StatusOr<std::unique_ptr<server::device::Device>>()>;

// Compares every rank of a random job's plan.
void Check(const MakeDevice& make_device, int threads, const NewJob& job) {
  auto request = coordinator::dispatch::PlanRequestOf(job);
  ASSERT_TRUE(request.ok()) << request.status();
  const auto sample = make_device();
  ASSERT_TRUE(sample.ok()) << sample.status();
  const std::string id = (*sample)->numerics_id();
  request->packed_bytes = coordinator::planner::PackedBytesOf(id);
  request->scratch_bytes = coordinator::planner::ScratchBytesOf(id);
  request->threads.assign(request->ranks, threads);
  const auto plan = coordinator::planner::MakePlan(*request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Crew crew{.numerics_id = id};
  for (int rank = 0; rank < request->ranks; ++rank) {
    crew.members.push_back({.name = "stage-" + std::to_string(rank),
                            .host = "host",
                            .data_address = "127.0.0.1:1"});
  }
  const Options options;
  for (int rank = 0; rank < request->ranks; ++rank) {
    const auto assignment = server::executor::DecodeAssignment(
        AssignmentFor({.spec = job.spec,
                       .job_id = "job",
                       .plan = *plan,
                       .crew = crew,
                       .epoch_secret = "s",
                       .options = options,
                       .command_deadline = absl::Minutes(1)},
                      rank));
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    const auto device = make_device();
    ASSERT_TRUE(device.ok()) << device.status();
    const auto measured = Assemble(**device, *assignment);
    ASSERT_TRUE(measured.ok()) << measured.status();
    ExpectPredicted(plan->memory[rank], *measured);
  }
}

void CheckMany(const MakeDevice& make_device, int threads, unsigned seed,
               int rounds) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " +
                 std::to_string(round));
    Check(make_device, threads, RandomJob(random));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(MemoryPredictionTest, EqualsWhatReferenceDevicesAllocate) {
  CheckMany(server::device::reference::CreateReferenceDevice, 1, 1, 300);
}

TEST(MemoryPredictionTest, EqualsWhatCpuDevicesAllocateOnEveryLevel) {
  for (const auto isa : server::device::cpu::SupportedIsas()) {
    SCOPED_TRACE(server::device::cpu::Name(isa));
    for (const int threads : {1, 3}) {
      CheckMany(
          [isa, threads] {
            return server::device::cpu::CreateCpuDevice(
                {.threads = threads, .max_isa = isa});
          },
          threads, 2 + threads, 60);
    }
  }
}

}  // namespace
}  // namespace penstock
