// Proves that no step is shorter than a length, for steps that are too large
// for the exact oracle: tells how much of what lies between the automatic
// scheduler's step and its lower bound is the bound's. Shares no code with
// either.
#ifndef PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_H_
#define PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_H_

#include <vector>

#include "tests/coordinator/schedule/exact_oracle.h"
#include "tests/coordinator/schedule/step_proof_sequences.h"

namespace penstock::coordinator::schedule {

// Each command has a window: its earliest start, and its latest end if the step
// is not to be longer. Ranks pass what they know of theirs on to each other,
// and each rank by itself looks at all sequences of its commands
// (step_proof_sequences.h), until nothing changes or a rank has no sequence
// left.
//
// One stage a rank (loop placement, v = 1), unlimited slots, the rule of
// coordinator/schedule/lowered_program.h. As the exact oracle it rests on equal
// micro-batches being run in ascending order. Thread-compatible.
class StepProof {
 public:
  // REQUIRES: a B takes as long as I and W, and W holds no more than F left, so
  // that no B is better than I and W in its place. Of `costs.bytes` nothing is
  // used. Sizes may be larger than the oracle's.
  explicit StepProof(const OracleSetting& setting);

  // Whether no step takes at most `step`. False says nothing.
  bool NoneTakesAtMost(double step);

 private:
  template <typename Visit>
  void ForEachWait(int s, int kind, int m, const Visit& visit) const;
  void PassOnEarliest();
  void PassOnLatest();
  bool Tighten(int s);
  void Raise(double value, double* earliest);
  void Lower(double value, double* latest);

  const int micro_batches_;
  const int buffers_;
  const double latency_;
  std::vector<RankCommands> ranks_;   // (rank)
  std::vector<RankWindows> windows_;  // (rank)
  RankSequences sequences_;
  double slack_ = 0;  // Rounding.
  double moved_ = 0;  // By how much windows were narrowed.
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_TESTS_COORDINATOR_SCHEDULE_STEP_PROOF_H_
