// Which commands a rank may begin without passing its budget, and without
// filling it so that the micro-batches in flight cannot be finished. Internal
// to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

enum class Backward {
  kSplit,  // I, and W later.
  kWhole,  // B.
  kEither,
};

// What one rank holds of activations. Plain value.
struct RankHolding {
  int64_t bytes = 0;
  int64_t put_off = 0;  // Of these, what W would free at once.
};

// A forward leaves room for its micro-batch's forwards on the rank's later
// stages, and for an I that grows what it holds. Then the oldest micro-batch
// that is not through can always go on: the forwards admitted last at or before
// its stage left that room, and those after it were of older micro-batches,
// which need nothing more. Immutable.
class Admission {
 public:
  Admission(const AutoProblem& problem, Backward backward);

  bool AllowsForward(int stage, const RankHolding& holding) const {
    const Need& need = needs_[stage];
    return holding.bytes + need.forward <= need.budget &&
           holding.bytes - holding.put_off + need.forward + need.after <=
               need.budget;
  }
  bool AllowsInput(int stage, const RankHolding& holding) const {
    const Need& need = needs_[stage];
    return need.growth <= 0 || holding.bytes + need.growth <= need.budget;
  }
  // The same of a step that is played out backwards, with one stage a rank: W
  // comes first and holds, I changes the size, F frees. `holding` is that of
  // the step forwards, before what is played out already. A W leaves room for
  // an I: of those held at most one has begun to change its size at a time.
  bool AllowsWeightBackwards(int stage, const RankHolding& holding) const {
    const Need& need = needs_[stage];
    return holding.bytes + std::max(need.weight, need.forward) <= need.budget;
  }
  bool AllowsInputBackwards(int stage, const RankHolding& holding) const {
    const Need& need = needs_[stage];
    return need.growth >= 0 || holding.bytes - need.growth <= need.budget;
  }
  void Hold(int stage, Op op, RankHolding* holding) const {
    Add(stage, op, 1, holding);
  }
  // Takes Hold() back.
  void TakeBack(int stage, Op op, RankHolding* holding) const {
    Add(stage, op, -1, holding);
  }

 private:
  struct Need {           // Of one stage.
    int64_t forward = 0;  // Held from F,
    int64_t weight = 0;   // and from I.
    int64_t growth = 0;   // weight - forward
    int64_t after = 0;    // Room that F leaves.
    int64_t budget = 0;   // Of its rank.
  };
  void Add(int stage, Op op, int times, RankHolding* holding) const {
    const Need& need = needs_[stage];
    switch (op) {
      case Op::kForward:
        holding->bytes += times * need.forward;
        break;
      case Op::kBackwardInput:
        holding->bytes += times * need.growth;
        holding->put_off += times * need.weight;
        break;
      case Op::kBackwardWeight:
        holding->bytes -= times * need.weight;
        holding->put_off -= times * need.weight;
        break;
      case Op::kBackward:
        holding->bytes -= times * need.forward;
        break;
    }
  }

  std::vector<Need> needs_;  // (stage)
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_
