// Generation, verification, lowering and simulation at K = 32, M = 256; each is
// to take less than 50 ms.
//
//   build/dev/benchmarks/schedule_benchmark
#include <string>

#include "benchmark/benchmark.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/order_check.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "tests/coordinator/schedule/example_schedules.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr Shape kLarge{.ranks = 32, .chunks = 1, .micro_batches = 256};
constexpr Shape kChunked{.ranks = 32, .chunks = 2, .micro_batches = 256};

LoweringOptions Options(const Schedule& schedule) {
  LoweringOptions options;
  options.costs = UniformCosts(schedule.rank_shape(), {.transfer = 0.1});
  return options;
}

void BM_Generate(benchmark::State& state, std::string name) {
  for (auto _ : state) benchmark::DoNotOptimize(Generate(name, kLarge));
}
BENCHMARK_CAPTURE(BM_Generate, 1f1b, "1f1b")->Unit(benchmark::kMillisecond);

template <typename Measure>
void Run(benchmark::State& state, const Schedule& schedule,
         const Measure& measure) {
  const LoweringOptions options = Options(schedule);
  for (auto _ : state) {
    if (!measure(schedule, options)) state.SkipWithError("refused");
  }
}

void BM_Verify(benchmark::State& state, const Schedule& schedule) {
  Run(state, schedule, [](const Schedule& s, const LoweringOptions& options) {
    return Verify(s, options).ok();
  });
}

void BM_Lower(benchmark::State& state, const Schedule& schedule) {
  Run(state, schedule, [](const Schedule& s, const LoweringOptions& options) {
    return Lower(s, options).ok();
  });
}

void BM_Simulate(benchmark::State& state, const Schedule& schedule) {
  const LoweringOptions options = Options(schedule);
  const auto program = Lower(schedule, options);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Simulate(*program, options.costs));
  }
}

// Google Benchmark's own registration by name, once for each schedule.
void Register(const std::string& name, const Schedule& schedule) {
  const auto add = [&](const std::string& what, auto function) {
    benchmark::RegisterBenchmark((what + "/" + name).c_str(), function,
                                 schedule)
        ->Unit(benchmark::kMillisecond);
  };
  add("Verify", BM_Verify);
  add("Lower", BM_Lower);
  add("Simulate", BM_Simulate);
}

}  // namespace
}  // namespace penstock::coordinator::schedule

int main(int argc, char** argv) {
  using namespace penstock::coordinator::schedule;  // NOLINT
  for (const char* name : {"naive", "gpipe", "1f1b"}) {
    Register(name, *Generate(name, kLarge));
  }
  Register("looped-bfs-v2", LoopedBfs(kChunked));
  Register("zb1p-v2", InterleavedZb1p(kChunked));
  Register("greedy-v", GreedyV(kChunked));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
