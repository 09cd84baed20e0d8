// The automatic scheduler: how far its steps are from the exact optimum (small
// steps) and from the lower bound (large ones at the memory of 2 K stages, with
// how many of them may be more than 0.5 % longer than need be), and how long it
// takes for 32 ranks and 256 micro-batches, lowering and
// verification included.
//
//   build/dev/benchmarks/auto_benchmark [--settings=N] [Google Benchmark's]
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "benchmark/benchmark.h"
#include "common/log/log.h"
#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_schedule.h"
#include "tests/coordinator/schedule/auto_settings.h"
#include "tests/coordinator/schedule/exact_oracle.h"
#include "tests/coordinator/schedule/step_proof.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kSettings = 240;
constexpr int kSeed = 20261130;
// Of large steps, above the optimum.
constexpr double kNear = 0.005;

AutoSchedule Made(int micro_batches, const std::vector<AutoChoice>& choices) {
  absl::StatusOr<AutoSchedule> made = MakeAutoSchedule(micro_batches, choices);
  CHECK(made.ok()) << made.status();
  return *std::move(made);
}

// One row; gaps as shares, and how many may be too large.
void Print(const std::string& what, std::vector<double> gaps, int unproved) {
  std::sort(gaps.begin(), gaps.end());
  const size_t last = gaps.size() - 1;
  std::cout << absl::StrFormat(
      "| %-52s | %4d | %8.4f %% | %8.4f %% | %8.4f %% | %8.4f %% | %3d |\n",
      what, gaps.size(), 100 * gaps[last / 2], 100 * gaps[last * 9 / 10],
      100 * gaps[last * 99 / 100], 100 * gaps[last], unproved);
}

void PrintGapsToOptimum(int settings) {
  std::mt19937 random(kSeed);
  std::vector<double> gaps;
  int unproved = 0;
  for (int i = 0; i < settings; ++i) {
    const AutoSetting setting = SmallSetting(i, &random);
    const double makespan =
        Made(setting.micro_batches, {setting.choice}).makespan;
    const absl::StatusOr<Optimum> optimum =
        FindOptimum(OracleSettingOf(setting), {.upper_bound = makespan});
    CHECK(optimum.ok()) << optimum.status();
    unproved += !optimum->proved;
    gaps.push_back(makespan / optimum->makespan - 1);
  }
  Print("above the exact optimum: K <= 4, M <= 8", gaps, unproved);
}

void PrintGapsToBound(int settings) {
  struct Row {
    const char* what;
    StageSpread spread;
    double longest_transfer;
  };
  for (const Row& row :
       {Row{"F = I = W, stages equal", StageSpread::kEqual, 0},
        Row{"F, I, W differ, stages equal", StageSpread::kSame, 0},
        Row{"and transfers up to 0.1 F", StageSpread::kSame, 0.1},
        Row{"stages differ by 30 % either way", StageSpread::kUneven, 0},
        Row{"and transfers up to 0.1 F", StageSpread::kUneven, 0.1},
        Row{"any time up to 5 times another", StageSpread::kUnlike, 0},
        Row{"and transfers up to F", StageSpread::kUnlike, 1}}) {
    std::mt19937 random(kSeed);
    std::vector<double> gaps;
    int unproved = 0;
    for (int i = 0; i < settings; ++i) {
      const AutoSetting setting =
          LargeSetting(row.spread, row.longest_transfer, &random);
      const double makespan =
          Made(setting.micro_batches, {setting.choice}).makespan;
      gaps.push_back(makespan / StepLowerBound(setting.micro_batches,
                                               setting.choice.placement,
                                               setting.choice.options) -
                     1);
      unproved +=
          gaps.back() > kNear && !StepProof(OracleSettingOf(setting))
                                      .NoneTakesAtMost(makespan / (1 + kNear));
    }
    Print(std::string("above the lower bound: ") + row.what, gaps, unproved);
  }
  std::cout << "\n";
}

// 32 ranks, 256 micro-batches, room for 64.
AutoChoice LargestChoice(StageSpread spread, double transfer,
                         const Placement& placement) {
  std::mt19937 random(kSeed);
  AutoSetting setting =
      RandomSetting(256, placement, {.spread = spread}, &random);
  LoweringOptions& options = setting.choice.options;
  options.costs.latency = transfer;
  const int chunks = placement.stages() / placement.ranks;
  options.memory.limits.assign(
      placement.ranks, 64 * chunks * options.memory.stages[0].held_until_input);
  return setting.choice;
}

void BM_Auto(benchmark::State& state, const std::vector<AutoChoice>& choices) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(Made(256, choices).makespan);
  }
}

void RegisterTimes() {
  const Placement loop = LoopPlacement({.ranks = 32});
  const auto add = [](const char* name, std::vector<AutoChoice> choices) {
    benchmark::RegisterBenchmark(name, BM_Auto, std::move(choices))
        ->Unit(benchmark::kMillisecond);
  };
  add("Auto/equal", {LargestChoice(StageSpread::kEqual, 0, loop)});
  add("Auto/uneven", {LargestChoice(StageSpread::kUneven, 0, loop)});
  add("Auto/uneven with transfers",
      {LargestChoice(StageSpread::kUneven, 0.1, loop)});
  AutoChoice slots = LargestChoice(StageSpread::kUneven, 0.1, loop);
  slots.options.memory.slot = {.activation = 1, .gradient = 1};
  add("Auto/uneven with transfers and bytes of slots", {slots});
  add("Auto/unlike", {LargestChoice(StageSpread::kUnlike, 0, loop)});
  add("Auto/uneven, loop or V",
      {LargestChoice(StageSpread::kUneven, 0, loop),
       LargestChoice(StageSpread::kUneven, 0,
                     VPlacement({.ranks = 32, .chunks = 2}))});
}

int SettingsOf(int argc, char** argv) {
  int settings = kSettings;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--settings=")) {
      CHECK(absl::SimpleAtoi(argument, &settings) && settings > 0) << argv[i];
    }
  }
  return settings;
}

}  // namespace
}  // namespace penstock::coordinator::schedule

int main(int argc, char** argv) {
  using namespace penstock::coordinator::schedule;  // NOLINT
  const int settings = SettingsOf(argc, argv);
  std::cout << "| step | settings | median | p90 | p99 | most | unproved |\n"
               "| --- | --- | --- | --- | --- | --- | --- |\n";
  PrintGapsToOptimum(settings);
  PrintGapsToBound(settings);
  RegisterTimes();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
