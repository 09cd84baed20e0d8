#include "coordinator/schedule/zb1p_order.h"

#include <algorithm>

namespace penstock::coordinator::schedule {

std::vector<Command> Zb1pOrder(const LoopedOrder& looped, int rank) {
  const Shape& shape = looped.shape();
  const int count = looped.count();
  const int warm_up = std::min(
      (shape.chunks - 1) * looped.group() + shape.ranks - 1 - rank, count);
  std::vector<Command> order;
  order.reserve(3 * count);
  for (int i = 0; i < warm_up; ++i) order.push_back(looped.Forward(rank, i));
  for (int i = 0; i < count + rank; ++i) {
    if (const int next = warm_up + i; next < count) {
      order.push_back(looped.Forward(rank, next));
    }
    if (i < count) {
      order.push_back(looped.Backward(Op::kBackwardInput, rank, i));
    }
    if (i >= rank) {
      order.push_back(looped.Backward(Op::kBackwardWeight, rank, i - rank));
    }
  }
  return order;
}

}  // namespace penstock::coordinator::schedule
