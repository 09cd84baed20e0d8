#include "coordinator/schedule/dualpipe_v.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/v_order.h"

namespace penstock::coordinator::schedule {
namespace {

// Backwards whose W is still to come, oldest first.
class SplitBackwards {
 public:
  explicit SplitBackwards(VOrder* order) : order_(order) {}

  void BackwardInput(int chunk) {
    order_->BackwardInput(chunk);
    chunks_.push_back(chunk);
  }
  void BackwardWeight() { order_->BackwardWeight(chunks_[next_++]); }
  bool AnyLeft() const { return next_ < chunks_.size(); }

 private:
  VOrder* order_;
  std::vector<int> chunks_;
  size_t next_ = 0;
};

void RankOrder(const Shape& shape, int rank, std::vector<Command>* commands) {
  VOrder order(shape, rank, commands);
  SplitBackwards split(&order);
  const int below = shape.ranks - rank - 1;  // Ranks further down the V.
  for (int i = 0; i < 2 * below; ++i) order.Forward(0);
  for (int i = 0; i <= rank; ++i) {
    order.Forward(0);
    order.Forward(1);
  }
  for (int i = 0; i < below; ++i) {
    split.BackwardInput(1);
    split.BackwardWeight();
    order.Forward(1);
  }
  for (int i = 0; i < shape.micro_batches - 2 * shape.ranks + rank + 1; ++i) {
    order.Forward(0);
    order.Backward(1);
    order.Forward(1);
    order.Backward(0);
  }
  for (int i = 0; i < below; ++i) {
    order.Backward(1);
    order.Forward(1);
    order.Backward(0);
  }
  for (int i = 0; i <= rank; ++i) {
    for (const int chunk : {1, 0}) {
      if (i < (rank + 1) / 2) {
        order.Backward(chunk);
      } else {
        split.BackwardInput(chunk);
      }
    }
  }
  for (int i = 0; i < below; ++i) {
    split.BackwardWeight();
    split.BackwardInput(0);
  }
  while (split.AnyLeft()) split.BackwardWeight();
}

}  // namespace

absl::StatusOr<Schedule> GenerateDualpipeV(const Shape& shape) {
  RETURN_IF_ERROR(CheckShapeOfChunks("dualpipe-v", shape, 2));
  if (shape.micro_batches < 2 * shape.ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dualpipe-v: M must be at least 2K; M = ", shape.micro_batches,
        " micro-batches on K = ", shape.ranks, " ranks, at least ",
        2 * shape.ranks, " are needed"));
  }
  Schedule schedule = EmptySchedule(
      "dualpipe-v", VPlacement({.ranks = shape.ranks, .chunks = 2}),
      shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    schedule.orders[r].reserve(6 * shape.micro_batches);
    RankOrder(shape, r, &schedule.orders[r]);
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
