// What one rank of the bare program does in a step: the lowered program of a
// job with nothing but its waits and times left.
#ifndef PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_RANK_PLAN_H_
#define PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_RANK_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/schedule.h"
#include "coordinator/schedule/simulator.h"

namespace penstock::benchmarks::schedule {

inline constexpr int kNone = -1;

// A rank's end of an edge.
struct EdgeEnd {
  int id = 0;    // Of the edge, the same at both ends.
  int peer = 0;  // Rank.
  bool sends = false;
  int messages = 0;  // In a step.
  // Receiver: credits that it grants when a step begins.
  int first_credits = 0;
};

// One operation.
struct PlannedOp {
  int64_t nanoseconds = 0;
  int input = kNone;  // Index into RankPlan::edges, or kNone.
  int input_message = 0;
  int output = kNone;  // Likewise.
  // Message of `output` that must have arrived; negative: of the step before.
  int awaited_ack = 0;
  // Edges, with repetition, that get a credit when this op is complete.
  std::vector<int> credits;
};

struct RankPlan {
  std::vector<PlannedOp> ops;
  std::vector<EdgeEnd> edges;
};

// A step of the whole pipeline. A plain value.
struct PipelinePlan {
  std::string schedule;
  int ranks = 1;
  int micro_batches = 1;
  coordinator::schedule::Simulation simulated;  // In seconds.
  std::vector<RankPlan> rank_plans;
};

struct PlanOptions {
  // A schedule's name, or "file:PATH" of one as CSV.
  std::string schedule;
  coordinator::schedule::Shape shape;
  coordinator::schedule::RankTimes times;  // Seconds.
};

// Generates or reads the schedule, lowers it as the planner does for these
// times, and simulates it. Errors as theirs.
absl::StatusOr<PipelinePlan> MakePipelinePlan(const PlanOptions& options);

}  // namespace penstock::benchmarks::schedule

#endif  // PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_RANK_PLAN_H_
