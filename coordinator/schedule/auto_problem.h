// What the automatic scheduler searches over: one placement with its times and
// sizes, flattened for speed. Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_PROBLEM_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// The orders of a step's commands: (rank, position).
using Orders = std::vector<std::vector<Command>>;

// Of two steps' times: sums of the same times in another order are equal.
inline constexpr double kTolerance = 1e-9;

// A time that does not come.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Beyond what all micro-batches together can hold.
inline constexpr int64_t kNoBudget = int64_t{1} << 62;

// Messages take what lowering computes: slots cost no time, so there are enough
// of them here; send buffers are as lowered_program.h has them.
struct AutoProblem {
  int ranks = 1;          // K
  int chunks = 1;         // v
  int stages = 1;         // S = K * v
  int micro_batches = 1;  // M
  Placement placement;
  std::vector<int> rank_of;                 // (stage)
  std::vector<std::vector<int>> stages_of;  // (rank): ascending.
  std::vector<StageTimes> times;            // (stage)
  // (stage): whether its input comes from another rank.
  std::vector<uint8_t> remote_input;

  double latency = 0;
  double activation_wire = 0;
  double gradient_wire = 0;
  int send_buffers = 1;
  // Embedding and head on two ranks share a weight.
  bool tied_edges = false;
  double tied_wire = 0;
  double tied_add = 0;

  std::vector<StageBytes> held;  // (stage)
  Places places = Places::kShared;
  // (rank): bytes for activations; what slots and buffers take is off already.
  std::vector<int64_t> budget;

  double activation_transfer() const { return activation_wire + latency; }
  double gradient_transfer() const { return gradient_wire + latency; }
  // The next message of an edge arrives then, `before` being the arrival of the
  // one before (negative: none).
  double Arrival(double end, double before, double wire) const {
    const double wire_free = before - latency;
    return (end < wire_free ? wire_free : end) + wire + latency;
  }
};

// REQUIRES: options whose sizes fit the placement. The budget is the limit, or
// kNoBudget where there is none.
AutoProblem MakeAutoProblem(int micro_batches, const Placement& placement,
                            const LoweringOptions& options);

// What an order takes by the rule of lowered_program.h with enough slots.
struct OrderTiming {
  bool finished = false;  // Else nobody can go on.
  double makespan = 0;
};
// Times orders as Simulate does a lowered program whose slots cost no time, at
// a fraction of its cost. REQUIRES: every stage's F, and its I or B, ascend in
// micro-batches.
OrderTiming TimeOrders(const AutoProblem& problem, const Orders& orders);

// Whether a B can be worth more than an I and a W: where it takes less time or
// where W needs more memory than F left.
bool WholeBackwardMayWin(const AutoProblem& problem);

// What at least follows for a tied weight; nothing where it is on one rank, or
// where other stages' commands may come after it (more than one chunk).
struct TiedTails {
  double after_rank = 0;   // Once the rank's own commands have ended.
  double after_chain = 0;  // Once the last W of stage 0 has ended.
};
TiedTails TiedTailsOf(const AutoProblem& problem, int rank);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_PROBLEM_H_
