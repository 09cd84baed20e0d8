// The order in which a looped schedule with v chunks takes its micro-batches:
// in groups of N, a group through chunk 0, then through chunk 1, ... Forwards
// take the chunks up, backwards down. Internal to the generators of such
// schedules.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_ORDER_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_ORDER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// Immutable. Positions are 0 .. count() - 1, the same on every rank.
class LoopedOrder {
 public:
  // Groups of N = M // max(1, M//K) micro-batches: one group where M < K, else
  // at least K in each, so that no rank waits for a chunk's inputs.
  // InvalidArgument: a shape that CheckShape refuses, or groups that would not
  // be equal: M mod max(1, M//K) must be 0.
  static absl::StatusOr<LoopedOrder> Create(absl::string_view name,
                                            const Shape& shape);
  // All micro-batches in one group. REQUIRES: CheckShape takes the shape.
  static LoopedOrder OneGroup(const Shape& shape) {
    return LoopedOrder(shape, shape.micro_batches);
  }

  const Shape& shape() const { return shape_; }
  int group() const { return group_; }  // N
  int count() const { return shape_.chunks * shape_.micro_batches; }
  Command Forward(int rank, int position) const {
    return At(Op::kForward, rank, Chunk(position), position);
  }
  // `op` is B, I or W.
  Command Backward(Op op, int rank, int position) const {
    return At(op, rank, shape_.chunks - 1 - Chunk(position), position);
  }

 private:
  LoopedOrder(const Shape& shape, int group) : shape_(shape), group_(group) {}
  int Chunk(int position) const { return position / group_ % shape_.chunks; }
  Command At(Op op, int rank, int chunk, int position) const {
    const int round = position / (group_ * shape_.chunks);
    return {op, chunk * shape_.ranks + rank,
            round * group_ + position % group_};
  }

  Shape shape_;
  int group_;
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_LOOPED_ORDER_H_
