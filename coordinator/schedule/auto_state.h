// A step begun, as the beam search extends it. Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_STATE_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_STATE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// What a stage has begun of each operation.
struct StageCounts {
  int16_t forwards = 0;
  int16_t inputs = 0;
  int16_t weights = 0;
};

struct StepState {
  std::vector<StageCounts> counts;  // (stage)
  std::vector<double> free;         // (rank): its last command ends.
  Holding holding;
  // (stage, micro-batch): when the stage's input is there, and its output's
  // gradient. Unknown: never.
  std::vector<double> activation;
  std::vector<double> gradient;
  int left = 0;  // F, I and W to run; a B is two.
  // Two bits a rank, WaitBit(): it leaves its F, or its I, for later, until it
  // has run something else. With own places it takes no more of
  // them for F, or for I, for good.
  uint64_t waits = 0;
};

// What running a command changes that cannot be computed back.
struct StateBefore {
  double free = 0;  // Of the rank.
  HoldingChange holding;
  uint64_t waits = 0;
};

// A command that could come next on its rank, and when it then runs.
struct NextCommand {
  Op op = Op::kForward;
  int stage = 0;
  double start = 0;
  double end = 0;
};

// How a lower bound of the step is made of the state's.
struct StateScore {
  double bound = 0;  // No step that begins like this ends before.
  double total = 0;  // The same of each rank by itself, added up.
};

// Room that Score() works in, to be given again and again.
struct ScoreScratch {
  std::vector<double> forward;  // (stage): its next F can start then.
  std::vector<double> input;    // (stage): its next I.
};

// What does not change during a search. Immutable.
class StateRules {
 public:
  explicit StateRules(const AutoProblem& problem);

  StepState Begin() const;
  // All commands that could come next on `rank`, appended.
  void AppendNext(const StepState& state, int rank,
                  std::vector<NextCommand>* next) const;
  void Run(const NextCommand& next, StepState* state) const;
  StateBefore Before(const NextCommand& next, const StepState& state) const;
  // Takes Run() back.
  void Undo(const NextCommand& next, const StateBefore& before,
            StepState* state) const;
  StateScore Score(const StepState& state, ScoreScratch* scratch) const;
  // The bit of waits for a command that could be better left for later though
  // nothing else is ready, or 0. Where I grows what is held, an F and an I can
  // take each other's room: then the one that comes first is not the better one
  // for sure, as it is elsewhere. A rank's own places are divided once: it may
  // have slots enough while there is room for more.
  uint64_t WaitBit(const StepState& state, const NextCommand& next) const;
  // Whether whatever follows `b` could follow `a` no later. REQUIRES: the same
  // counts.
  bool Dominates(const StepState& a, const StepState& b) const;

 private:
  struct Tail {                // Of a stage; what must follow once ...
    double after_input = 0;    // ... its last I ended: I down to stage 0, a W.
    double after_forward = 0;  // ... its last F ended: all of the way back.
  };
  // Of one edge, in their order.
  struct Messages {
    int source = 0;  // Stages.
    int target = 0;
    int taken = 0;
    int sent = 0;
  };
  bool NoLater(const std::vector<double>& a, const std::vector<double>& b,
               const StepState& state, const Messages& messages) const;
  size_t Cell(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * problem_.micro_batches + micro_batch;
  }
  // WaitBit() of a command other than W.
  bool OwnWait(const NextCommand& next, const Holding& holding) const;
  bool SharedWait(const NextCommand& next, const StepState& state) const;
  bool MayForward(int stage, uint64_t waits, const Holding& holding) const;
  bool MayInput(int stage, uint64_t waits, const Holding& holding) const;
  double ForwardReady(const StepState& state, int stage) const;
  double InputReady(const StepState& state, int stage) const;
  void Arrive(std::vector<double>* arrivals, int target, int micro_batch,
              bool remote, double wire, double end) const;
  void EarliestNext(const StepState& state, double* forward,
                    double* input) const;

  const AutoProblem& problem_;
  const Admission admission_;
  std::vector<Tail> tails_;        // (stage)
  std::vector<TiedTails> tied_;    // (rank)
  std::vector<int> put_off_;       // (rank): most W left when its last I runs.
  std::vector<uint8_t> grows_;     // (rank)
  bool own_ = false;               // Places are the stages' own.
  bool whole_ = false;             // B is looked at too.
  std::vector<StageTimes> least_;  // (stage): of I and W or B, whichever less.
};

// Here because both Score() and what comes next ask for nothing else as often.
inline double StateRules::ForwardReady(const StepState& state, int s) const {
  const int m = state.counts[s].forwards;
  double ready = state.activation[Cell(s, m)];
  const int before = m - problem_.send_buffers;
  if (s + 1 < problem_.stages && problem_.remote_input[s + 1] && before >= 0) {
    ready = std::max(ready, state.activation[Cell(s + 1, before)]);
  }
  return ready;
}

inline double StateRules::InputReady(const StepState& state, int s) const {
  const int m = state.counts[s].inputs;
  if (m >= state.counts[s].forwards) return kNever;
  double ready = s + 1 == problem_.stages ? 0 : state.gradient[Cell(s, m)];
  const int before = m - problem_.send_buffers;
  if (s > 0 && problem_.remote_input[s] && before >= 0) {
    ready = std::max(ready, state.gradient[Cell(s - 1, before)]);
  }
  return ready;
}

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_STATE_H_
