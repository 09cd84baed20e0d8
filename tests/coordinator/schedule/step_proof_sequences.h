// All sequences of one rank's commands that keep to their windows. Internal to
// step_proof.cc.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_SEQUENCES_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_SEQUENCES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "coordinator/schedule/costs.h"

namespace penstock::coordinator::schedule {

// (kind, micro-batch), kinds being F, I and W.
struct RankWindows {
  std::array<std::vector<double>, 3> earliest;  // Start.
  std::array<std::vector<double>, 3> latest;    // End.
};

// One rank's commands.
struct RankCommands {
  std::array<double, 3> times = {};  // (kind)
  StageBytes bytes;
  int64_t limit = 0;
  // Least time from the end of an F, or of an I, to the start of the next.
  std::array<double, 2> gaps = {};
};

// Sequences are told apart by their counts of F, I and W only: for each, the
// times that a sequence can leave, none of which another one makes useless, and
// the same from the end. Thread-compatible: keeps the memory that it works in.
class RankSequences {
 public:
  explicit RankSequences(int micro_batches);

  // Narrows the windows to what the rank's sequences allow. False: there is
  // none.
  bool Narrow(const RankCommands& rank, double slack, RankWindows* windows);

 private:
  using Counts = std::array<int, 3>;
  // When a sequence can go on: with a W, with an F or with an I. Backwards in
  // time, where times are negative, all are read from the end.
  struct Point {
    double free = 0;
    std::array<double, 2> next = {};
  };
  using Front = std::vector<Point>;

  // Of counts that ascend from W to F.
  static size_t Index(const Counts& at) {
    const size_t f = at[0], i = at[1], w = at[2];
    return f * (f + 1) * (f + 2) / 6 + i * (i + 1) / 2 + w;
  }
  bool MayFollow(const Counts& at, int kind) const;
  // The start of a command of the kind after a point, or infinity where it
  // would end after `latest`.
  double Start(const Point& from, int kind, double earliest,
               double latest) const;
  Point After(const Point& from, int kind, double start) const;
  static void Insert(const Point& point, Front* front);
  void FindBegun(const RankWindows& windows);
  void FindLeft(const RankWindows& windows, RankWindows* possible);

  const int micro_batches_;
  RankCommands rank_;  // That is looked at.
  double slack_ = 0;
  std::vector<Counts> reached_;  // Each after those that lead to it.
  std::vector<Front> begun_;     // (counts): from the start,
  std::vector<Front> left_;      // and from the end.
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_SEQUENCES_H_
