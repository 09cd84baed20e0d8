// Which commands a rank may begin without passing its budget, and without
// filling it so that the micro-batches in flight cannot be finished. Internal
// to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

enum class Backward {
  kSplit,  // I, and W later.
  kWhole,  // B.
  kEither,
};

// How a rank's room is divided between its stages' own places.
struct PlaceSplit {
  enum class Slots {
    kAsTaken,  // Whoever needs one gets it while there is room.
    kEven,     // Each stage gets at most as many as the others,
    kByDepth,  // or the more the further its micro-batches have to go.
  };
  Slots slots = Slots::kAsTaken;
  // Of the slots, those for which there is a place for what I adds from the
  // beginning.
  double held_share = 0;
};

// What one rank holds of activations. Plain value.
struct RankHolding {
  int64_t bytes = 0;    // Own places: of all that it ever had.
  int64_t put_off = 0;  // Only of shared places: what W would free at once.
};

// A stage's own places. Plain value.
struct StageHolding {
  int slots = 0;      // Allocated.
  int in_flight = 0;  // Slots taken.
  int held = 0;       // Places for what I adds, allocated.
  int put_off = 0;    // Of those, taken until W.
};

// What all ranks hold.
struct Holding {
  std::vector<RankHolding> ranks;
  std::vector<StageHolding> stages;  // Empty where places are shared.
};

// What one command changes of it.
struct HoldingChange {
  RankHolding rank;
  StageHolding stage;
  StageHolding next;
};

// Shared places: a forward leaves room for its micro-batch's forwards on the
// rank's later stages, and for an I that grows what it holds. Then the oldest
// micro-batch that is not through can always go on: the forwards admitted last
// at or before its stage left that room, and those after it were of older
// micro-batches, which need nothing more.
//
// Own places: each stage has one of each sort from the beginning and gets more
// when a command needs one and the budget allows it. The oldest micro-batch
// that is not through waits at most for older ones, which are, and their W.
//
// Immutable.
class Admission {
 public:
  // `split` is of no matter where places are shared.
  Admission(const AutoProblem& problem, Backward backward,
            const PlaceSplit& split = {});

  Holding Begin() const { return begin_; }

  bool AllowsForward(int stage, const Holding& holding) const {
    const Need& need = needs_[stage];
    const RankHolding& rank = holding.ranks[need.rank];
    if (own_) {
      return MayHaveSlots(need, stage, holding) &&
             rank.bytes + MoreForForward(need, stage, holding) <= need.budget;
    }
    return rank.bytes + need.forward <= need.budget &&
           rank.bytes - rank.put_off + need.forward + need.after <= need.budget;
  }
  bool AllowsInput(int stage, const Holding& holding) const {
    const Need& need = needs_[stage];
    const int64_t bytes = holding.ranks[need.rank].bytes;
    if (own_) {
      return bytes + MoreForInput(need, holding.stages[stage]) <= need.budget;
    }
    return need.growth <= 0 || bytes + need.growth <= need.budget;
  }
  // Of own places, the same without more of them.
  bool HasSlotsForForward(int stage, const Holding& holding) const {
    return MoreForForward(needs_[stage], stage, holding) == 0;
  }
  bool HasPlaceForInput(int stage, const Holding& holding) const {
    return MoreForInput(needs_[stage], holding.stages[stage]) == 0;
  }
  // Whether the command takes room for good that the other sort of place could
  // have, on a rank of one stage.
  bool ForwardTakesRoom(int stage, const Holding& holding) const;
  bool InputTakesRoom(int stage, const Holding& holding) const;
  // Of shared places on a rank of one stage: the same once that has begun a
  // command of the other sort.
  bool AllowsForwardAfterInput(int stage, const Holding& holding) const;
  bool AllowsInputAfterForward(int stage, const Holding& holding) const;

  // Of a step that is played out from its end, on a rank of one stage: a W
  // takes what its micro-batch holds, its I gives back what that adds, its F
  // the rest. A W leaves room for an I that needs more: at most one of those
  // held has begun it. Nothing is taken of `put_off` of shared places.
  bool AllowsWeightBackwards(int stage, const Holding& holding) const;
  bool AllowsInputBackwards(int stage, const Holding& holding) const;
  void HoldBackwards(int stage, Op op, Holding* holding) const;

  void Hold(int stage, Op op, Holding* holding) const;
  // What Hold() will change, to take it back.
  HoldingChange Before(int stage, const Holding& holding) const;
  void TakeBack(int stage, const HoldingChange& before, Holding* holding) const;

 private:
  struct Need {  // Of one stage.
    int rank = 0;
    int64_t forward = 0;      // Held from F,
    int64_t weight = 0;       // and from I.
    int64_t growth = 0;       // weight - forward
    int64_t after = 0;        // Room that F leaves.
    int64_t budget = 0;       // Of its rank.
    int most_slots = 1;       // If they are its own.
    bool takes_slot = false;  // Its F; else that of the stage before did.
    bool feeds_next = false;  // Its F takes a slot of the next stage too.
  };
  void ShareRoom(const AutoProblem& problem, Backward backward);
  void MakePlaces(const AutoProblem& problem, Backward backward,
                  const PlaceSplit& split);
  bool MayHaveSlots(const Need& need, int stage, const Holding& holding) const {
    const auto may = [&](int s) {
      return holding.stages[s].in_flight < needs_[s].most_slots;
    };
    return (!need.takes_slot || may(stage)) &&
           (!need.feeds_next || may(stage + 1));
  }
  int64_t MoreForForward(const Need& need, int stage,
                         const Holding& holding) const {
    const auto more = [&](int s) {
      const StageHolding& own = holding.stages[s];
      return own.in_flight < own.slots ? 0 : needs_[s].forward;
    };
    return (need.takes_slot ? more(stage) : 0) +
           (need.feeds_next ? more(stage + 1) : 0);
  }
  static int64_t MoreForInput(const Need& need, const StageHolding& own) {
    return own.put_off < own.held ? 0 : need.growth;
  }
  static void HoldShared(const Need& need, Op op, RankHolding* rank);
  void HoldOwn(const Need& need, int stage, Op op, Holding* holding) const;

  bool own_ = false;
  int micro_batches_ = 0;
  std::vector<Need> needs_;  // (stage)
  Holding begin_;
};

// Bytes of each rank's places for activations, as MemoryUse::activations
// without inputs ahead.
std::vector<int64_t> PeakHeld(const AutoProblem& problem, const Orders& orders);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_ADMISSION_H_
