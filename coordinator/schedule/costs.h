// What a step costs in time and bytes: given to lowering and to the simulator
// by the planner (measured or analytic), or by `penstock simulate`'s flags.
//
// Times are seconds as double; any unit works as long as it is one unit.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_COSTS_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_COSTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/schedule/instruction.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// Times of one virtual stage for one micro-batch.
struct StageTimes {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  // The full backward where it was measured by itself; else I + W.
  std::optional<double> backward = std::nullopt;

  double of(Op op) const {
    switch (op) {
      case Op::kForward:
        return forward;
      case Op::kBackward:
        return backward.value_or(backward_input + backward_weight);
      case Op::kBackwardInput:
        return backward_input;
      case Op::kBackwardWeight:
        return backward_weight;
    }
    return 0;
  }
};

// Size of one message of each kind.
struct MessageBytes {
  int64_t activation = 0;
  int64_t gradient = 0;
  int64_t tied = 0;
};

// How long things take. A message takes latency + bytes * seconds_per_byte
// from the moment that it is sent and has a slot; messages of one edge share
// its bandwidth, edges do not share.
struct Costs {
  std::vector<StageTimes> stages;  // One entry a virtual stage.
  double latency = 0;
  double seconds_per_byte = 0;
  MessageBytes bytes;
  double tied_add = 0;  // Adding the head's gradient to the embedding's.
};

// Times of a rank's whole share of layers, as `penstock simulate` takes them;
// each of its stages takes its part.
struct RankTimes {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double transfer = 0;  // Each message, whatever its size.
};
inline Costs UniformCosts(const RankShape& shape, const RankTimes& times) {
  const StageTimes stage{
      .forward = times.forward / shape.chunks,
      .backward_input = times.backward_input / shape.chunks,
      .backward_weight = times.backward_weight / shape.chunks};
  Costs costs;
  costs.stages.assign(shape.stages(), stage);
  costs.latency = times.transfer;
  return costs;
}

// Bytes that one micro-batch holds on a stage. After recompute the second can
// be the larger. While I runs, the larger of the two is held.
struct StageBytes {
  int64_t held_until_input = 0;   // From the start of F to the end of I or B.
  int64_t held_until_weight = 0;  // From there to the end of W.
};

// Where the activations of a rank's stages are.
enum class Places : uint8_t {
  // Any place serves any stage: counted is the most that is held at one time.
  kShared,
  // Each stage has its own, all allocated before the step, as executors do:
  // its slots, held_until_input each, and StageSlots::held places for what I
  // adds until W.
  kOwn,
};

// What is counted against a rank's limit: the stages' activations, the slots
// for inputs received ahead, gradient slots and send buffers. Weights and
// optimizer state are the planner's: it takes them off before it sets limits.
struct Memory {
  std::vector<StageBytes> stages;  // One entry a stage; empty: all 0.
  Places places = Places::kShared;
  // Of one slot or send buffer of each kind. An input ahead in its stage's own
  // place takes what that takes instead.
  MessageBytes slot;
  std::vector<int64_t> limits;  // One entry a rank; empty: none.

  StageBytes of(int stage) const {
    return stages.empty() ? StageBytes{} : stages[stage];
  }
};

// InvalidArgument unless there are times for that many stages and every time
// and size is finite and at least 0.
absl::Status CheckCosts(const Costs& costs, int stages);

// InvalidArgument unless the lists are empty or fit that many stages and ranks,
// no size is negative or beyond kMaxBytes, and with own places I frees nothing.
absl::Status CheckMemory(const Memory& memory, int stages, int ranks);
inline constexpr int64_t kMaxBytes = int64_t{1} << 44;

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_COSTS_H_
