// Random settings for what tests and measures the automatic scheduler: times,
// transfers, sizes and memory limits on one placement.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_AUTO_SETTINGS_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_AUTO_SETTINGS_H_

#include <random>

#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/placement.h"
#include "tests/coordinator/schedule/exact_oracle.h"

namespace penstock::coordinator::schedule {

struct AutoSetting {
  int micro_batches = 1;
  AutoChoice choice;
};

// How different the stages of a setting are.
enum class StageSpread {
  kEqual,   // F = I = W = 1.
  kSame,    // F, I and W differ, by up to 5 times; stages do not.
  kUneven,  // Stages differ by up to 30 % either way, as cut layers do.
  kUnlike,  // Any time of any stage, by up to 5 times.
};

struct SettingKind {
  StageSpread spread = StageSpread::kUnlike;
  // Longest transfer, in forwards.
  double longest_transfer = 0;
  // Micro-batches that a rank's limit has room for: 1 to this many; 0: none.
  int most_fitting = 0;
  // Activations of different sizes before and after I, slots that take bytes.
  bool bytes = false;
};
AutoSetting RandomSetting(int micro_batches, const Placement& placement,
                          const SettingKind& kind, std::mt19937* random);

// Setting i of a series with K <= 4, M <= 8 on a loop, within what the exact
// oracle takes: all spreads, with and without transfers, limits from one
// micro-batch up, some with two sizes of activations.
AutoSetting SmallSetting(int i, std::mt19937* random);
// Of a series with K <= 32, 2K <= M <= 256 and room for 2K micro-batches.
AutoSetting LargeSetting(StageSpread spread, double longest_transfer,
                         std::mt19937* random);

// As the exact oracle takes it.
OracleSetting OracleSettingOf(const AutoSetting& setting);

// Uniform in [least, most), the same everywhere.
double RandomBetween(double least, double most, std::mt19937* random);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_AUTO_SETTINGS_H_
