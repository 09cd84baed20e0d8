#include "tests/coordinator/schedule/auto_settings.h"

#include <algorithm>
#include <cstdint>

namespace penstock::coordinator::schedule {
namespace {

constexpr double kLeast = 0.3;
constexpr double kMost = 1.5;

StageTimes RandomTimes(std::mt19937* random) {
  StageTimes times;
  times.forward = RandomBetween(kLeast, kMost, random);
  times.backward_input = RandomBetween(kLeast, kMost, random);
  times.backward_weight = RandomBetween(kLeast, kMost, random);
  return times;
}

void SetTimes(const SettingKind& kind, int stages, Costs* costs,
              std::mt19937* random) {
  const StageTimes same =
      kind.spread == StageSpread::kEqual ? StageTimes{} : RandomTimes(random);
  for (int s = 0; s < stages; ++s) {
    StageTimes times = same;
    if (kind.spread == StageSpread::kUneven) {
      const double layers = RandomBetween(0.7, 1.3, random);
      times.forward *= layers;
      times.backward_input *= layers * RandomBetween(0.9, 1.1, random);
      times.backward_weight *= layers * RandomBetween(0.9, 1.1, random);
    } else if (kind.spread == StageSpread::kUnlike) {
      times = RandomTimes(random);
    }
    costs->stages.push_back(times);
  }
  costs->latency =
      RandomBetween(0, kind.longest_transfer * same.forward, random);
}

void SetMemory(const SettingKind& kind, const Placement& placement,
               Memory* memory, std::mt19937* random) {
  StageBytes bytes{.held_until_input = 4, .held_until_weight = 4};
  if (kind.bytes) {
    bytes.held_until_input = 1 + static_cast<int64_t>((*random)() % 8);
    bytes.held_until_weight = 1 + static_cast<int64_t>((*random)() % 8);
    memory->slot = {.activation = static_cast<int64_t>((*random)() % 3),
                    .gradient = static_cast<int64_t>((*random)() % 3),
                    .tied = 1};
  }
  memory->stages.assign(placement.stages(), bytes);
  if (kind.most_fitting == 0) return;
  const int chunks = placement.stages() / placement.ranks;
  const int fitting =
      1 +
      static_cast<int>((*random)() % static_cast<uint32_t>(kind.most_fitting));
  const int64_t size =
      std::max(bytes.held_until_input, bytes.held_until_weight) * chunks;
  // Room for the fewest slots and send buffers of every chunk.
  const int64_t slots =
      chunks * (2 * memory->slot.gradient + 2 * memory->slot.activation) +
      2 * memory->slot.tied;
  memory->limits.assign(placement.ranks, fitting * size + slots);
}

}  // namespace

OracleSetting OracleSettingOf(const AutoSetting& setting) {
  const LoweringOptions& options = setting.choice.options;
  return {.micro_batches = setting.micro_batches,
          .costs = options.costs,
          .memory = options.memory,
          .send_buffers = options.send_buffers};
}

double RandomBetween(double least, double most, std::mt19937* random) {
  return least + (most - least) * ((*random)() / 4294967296.0);
}

AutoSetting RandomSetting(int micro_batches, const Placement& placement,
                          const SettingKind& kind, std::mt19937* random) {
  AutoSetting setting;
  setting.micro_batches = micro_batches;
  setting.choice.placement = placement;
  SetTimes(kind, placement.stages(), &setting.choice.options.costs, random);
  SetMemory(kind, placement, &setting.choice.options.memory, random);
  return setting;
}

AutoSetting SmallSetting(int i, std::mt19937* random) {
  // Half of them of the largest size.
  const int ranks = i % 2 == 0 ? 4 : 2 + static_cast<int>((*random)() % 3);
  const int micro_batches = i % 2 == 0 ? 5 + static_cast<int>((*random)() % 4)
                                       : 1 + static_cast<int>((*random)() % 8);
  constexpr StageSpread kSpreads[] = {StageSpread::kEqual, StageSpread::kSame,
                                      StageSpread::kUneven,
                                      StageSpread::kUnlike};
  AutoSetting setting =
      RandomSetting(micro_batches, LoopPlacement({.ranks = ranks}),
                    {.spread = kSpreads[i % 4],
                     .longest_transfer = i % 3 == 0 ? 0.0 : 1.0,
                     .most_fitting = i % 5 == 0 ? 0 : 2 * ranks,
                     .bytes = i % 7 == 0},
                    random);
  setting.choice.options.memory.slot = {};
  return setting;
}

AutoSetting LargeSetting(StageSpread spread, double longest_transfer,
                         std::mt19937* random) {
  const int ranks = 2 + static_cast<int>((*random)() % 31);
  // Half of them with few micro-batches, which are the hard ones.
  const uint32_t span =
      (*random)() % 2 == 0 ? static_cast<uint32_t>(ranks) : 256 - 2 * ranks;
  const int micro_batches =
      std::min(256, 2 * ranks + static_cast<int>((*random)() % (span + 1)));
  AutoSetting setting = RandomSetting(
      micro_batches, LoopPlacement({.ranks = ranks}),
      {.spread = spread, .longest_transfer = longest_transfer}, random);
  Memory& memory = setting.choice.options.memory;
  memory.limits.assign(ranks, 2 * ranks * memory.stages[0].held_until_input);
  return setting;
}

}  // namespace penstock::coordinator::schedule
