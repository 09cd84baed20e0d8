// What the exact oracle searches through: a small pipeline, and partial
// schedules of it. Internal to exact_oracle.cc.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_NODE_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_NODE_H_

#include <array>
#include <cstdint>

#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/instruction.h"
#include "tests/coordinator/schedule/command_kinds.h"
#include "tests/coordinator/schedule/exact_oracle.h"

namespace penstock::coordinator::schedule::oracle {

// The ways to do a command of a kind, and a B, which does an I and a W at once.
inline constexpr int kB = 3, kWays = 4;
inline constexpr Op kOps[kWays] = {Op::kForward, Op::kBackwardInput,
                                   Op::kBackwardWeight, Op::kBackward};

// (rank, kind, micro-batch)
using Times =
    std::array<std::array<std::array<double, kOracleMicroBatches>, kKinds>,
               kOracleRanks>;

// Commands done on one rank.
using Counts = std::array<int, kKinds>;

// Those after a command of that way.
Counts After(Counts done, int way);

// A partial schedule: a prefix of each rank's row with its times, and by when
// the other commands can start and must end. Of done commands `earliest` is the
// start and `latest` at least the end; of a B, `earliest` is when an I or a W
// that ends with it would start.
struct Node {
  std::array<Counts, kOracleRanks> done = {};
  std::array<double, kOracleRanks> ready = {};  // End of the rank's last.
  // Bits of ways that must not come next, by decision of the search.
  std::array<int, kOracleRanks> not_next = {};
  Times earliest = {};
  Times latest = {};
};

// A setting in the form of the search. Immutable.
struct Pipeline {
  explicit Pipeline(const OracleSetting& setting);

  // Whether the rank's own row allows a command of that way next.
  bool MayFollow(int s, const Counts& done, int way) const;
  // Whether it may come next on the rank once `at` is done.
  bool MayBeNext(const Node& node, int s, const Counts& at, int way) const;
  // When the rank's next command of that way can start, or infinity where what
  // it takes from another rank is not done yet.
  double StartOf(const Node& node, int s, int way) const;
  bool Sends(int s, int kind) const;

  int ranks = 1;
  int micro_batches = 1;
  int buffers = 1;
  double latency = 0;
  std::array<std::array<double, kWays>, kOracleRanks> time = {};
  std::array<StageBytes, kOracleRanks> bytes = {};
  std::array<int64_t, kOracleRanks> limit = {};
  std::array<OraclePlaces, kOracleRanks> places = {};
  // Elsewhere I and W in its place are never worse than a B.
  std::array<bool, kOracleRanks> uses_b = {};

 private:
  bool Fits(int s, const Counts& done, int way) const;
};

}  // namespace penstock::coordinator::schedule::oracle

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_NODE_H_
