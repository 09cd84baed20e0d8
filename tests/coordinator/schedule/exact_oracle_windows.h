// By when the commands that a partial schedule leaves can start and must end.
// Internal to exact_oracle.cc.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_WINDOWS_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_WINDOWS_H_

#include <array>
#include <vector>

#include "tests/coordinator/schedule/exact_oracle_node.h"

namespace penstock::coordinator::schedule::oracle {

struct Target {
  double step = 0;   // The longest step that is looked for.
  double slack = 0;  // Rounding.
};

// Thread-compatible: keeps the memory that it works in. Borrows the pipeline.
class Windows {
 public:
  explicit Windows(const Pipeline& pipeline) : pipeline_(pipeline) {}

  // Raises `earliest` and lowers `latest`, in at most so many rounds. False: no
  // step of at most the target begins like this.
  bool Tighten(Node* node, const Target& target, int most_rounds);

 private:
  static constexpr int kSide = kOracleMicroBatches + 1;
  using ByCounts = std::array<double, kSide * kSide * kSide>;

  static int Index(const Counts& done) {
    return (done[kF] * kSide + done[kI]) * kSide + done[kW];
  }

  void Raise(Node* node, int s, int k, int m, double start);
  void Lower(Node* node, int s, int k, int m, double end);
  template <typename Visit>
  void ForEachWait(int s, int k, int m, const Visit& visit) const;
  void PassOnEarliest(Node* node);
  void PassOnLatest(Node* node);

  // One rank alone, over all its rows: in three steps.
  bool TightenRank(Node* node, int s);
  bool DoneCommandsAreOnTime(const Node& node, int s) const;
  void FindSoonest(const Node& node, int s);
  void FindPossible(const Node& node, int s);
  double StartIn(const Node& node, int s, const Counts& at, int way) const;
  static double LatestEnd(const Node& node, int s, const Counts& at, int way);

  const Pipeline& pipeline_;
  double slack_ = 0;
  bool moved_ = false;
  // Of the rank that is looked at: counts from what is done on, each after
  // those that lead to it; the earliest time with them done; the latest at
  // which what is left can begin; what is possible for each command.
  std::vector<Counts> reached_;
  ByCounts soonest_ = {};
  ByCounts latest_ = {};
  std::array<std::array<double, kOracleMicroBatches>, kKinds> earliest_start_;
  std::array<std::array<double, kOracleMicroBatches>, kKinds> latest_end_;
};

}  // namespace penstock::coordinator::schedule::oracle

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_EXACT_ORACLE_WINDOWS_H_
