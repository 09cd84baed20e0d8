// Generation, verification, lowering and simulation of every schedule at K =
// 32, M = 256, with 1, 2 and 4 chunks where it can; generation and verification
// together are to take at most 50 ms (auto, which searches: auto_benchmark.cc).
//
//   build/dev/benchmarks/schedule_benchmark
#include <string>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/order_check.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kRanks = 32;
constexpr int kMicroBatches = 256;

LoweringOptions Options(const Schedule& schedule) {
  LoweringOptions options;
  options.costs = UniformCosts(schedule.rank_shape(), {.transfer = 0.1});
  return options;
}

Schedule Large(absl::string_view name, int chunks) {
  return *Generate(
      name,
      {.ranks = kRanks, .chunks = chunks, .micro_batches = kMicroBatches});
}

void BM_Generate(benchmark::State& state, const Schedule& schedule) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Large(schedule.name, schedule.chunks()));
  }
}

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
void Register(const NamedSchedule& row, int chunks) {
  const std::string name = absl::StrCat(row.name, "/v", chunks);
  const Schedule schedule = Large(row.name, chunks);
  const auto add = [&](const std::string& what, auto function) {
    benchmark::RegisterBenchmark((what + "/" + name).c_str(), function,
                                 schedule)
        ->Unit(benchmark::kMillisecond);
  };
  add("Generate", BM_Generate);
  add("Verify", BM_Verify);
  add("Lower", BM_Lower);
  add("Simulate", BM_Simulate);
}

}  // namespace
}  // namespace penstock::coordinator::schedule

int main(int argc, char** argv) {
  using namespace penstock::coordinator::schedule;  // NOLINT
  for (const NamedSchedule& row : kNamedSchedules) {
    for (const int chunks : {1, 2, 4}) {
      if (row.fixed_chunks.value_or(chunks) == chunks) {
        Register(row, chunks);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
