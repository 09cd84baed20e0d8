// One rank's order under the V placement (placement.h) with two chunks, made
// command by command. Internal to the generators of V schedules.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_V_ORDER_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_V_ORDER_H_

#include <vector>

#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// The stage that is `rank`'s chunk 0 or 1.
inline int StageOfV(int ranks, int rank, int chunk) {
  return chunk == 0 ? rank : 2 * ranks - 1 - rank;
}

// Each (operation, chunk) takes the micro-batches 0, 1, ... as it is added;
// beyond M nothing is added, so a pattern may be made for more than there are.
// Thread-compatible; borrows the order.
class VOrder {
 public:
  VOrder(const Shape& shape, int rank, std::vector<Command>* order)
      : shape_(shape), rank_(rank), order_(order) {}

  void Forward(int chunk) { Add(Op::kForward, chunk, &forwards_[chunk]); }
  // The full backward.
  void Backward(int chunk) {
    Add(Op::kBackward, chunk, &inputs_[chunk]);
    ++weights_[chunk];
  }
  void BackwardInput(int chunk) {
    Add(Op::kBackwardInput, chunk, &inputs_[chunk]);
  }
  void BackwardWeight(int chunk) {
    Add(Op::kBackwardWeight, chunk, &weights_[chunk]);
  }

  // How many were added so far, those beyond M included.
  int forwards(int chunk) const { return forwards_[chunk]; }
  int weights(int chunk) const { return weights_[chunk]; }

 private:
  void Add(Op op, int chunk, int* count) {
    const int micro_batch = (*count)++;
    if (micro_batch >= shape_.micro_batches) return;
    order_->push_back({op, StageOfV(shape_.ranks, rank_, chunk), micro_batch});
  }

  Shape shape_;
  int rank_;
  std::vector<Command>* order_;
  int forwards_[2] = {0, 0};
  int inputs_[2] = {0, 0};   // I and B.
  int weights_[2] = {0, 0};  // W and B.
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_V_ORDER_H_
