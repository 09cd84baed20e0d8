#include "coordinator/schedule/v_pattern.h"

#include <cstddef>
#include <vector>

#include "coordinator/schedule/v_order.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kPeriod = 6;

std::vector<Command> RankOrder(const Shape& shape, int rank,
                               const VSlots& slots) {
  const int down = StageOfV(shape.ranks, rank, 0);
  const int up = StageOfV(shape.ranks, rank, 1);
  struct Residue {
    Op op = Op::kForward;
    int stage = 0;
    int first = -1;  // Slot of micro-batch 0; -1: free.
  };
  Residue residues[kPeriod];
  residues[slots.forward_0 % kPeriod] = {Op::kForward, down, slots.forward_0};
  residues[slots.forward_1 % kPeriod] = {Op::kForward, up, slots.forward_1};
  residues[slots.input_1 % kPeriod] = {Op::kBackwardInput, up, slots.input_1};
  residues[slots.input_0 % kPeriod] = {Op::kBackwardInput, down, slots.input_0};

  std::vector<Command> order;
  const size_t count = 6 * shape.micro_batches;
  order.reserve(count);
  std::vector<Command> weights;  // In the order of their I.
  weights.reserve(count / 3);
  size_t next_weight = 0;
  for (int slot = 0; order.size() < count; ++slot) {
    const Residue& residue = residues[slot % kPeriod];
    const int micro_batch = (slot - residue.first) / kPeriod;
    if (residue.first >= 0 && slot >= residue.first &&
        micro_batch < shape.micro_batches) {
      order.push_back({residue.op, residue.stage, micro_batch});
      if (residue.op == Op::kBackwardInput) {
        weights.push_back({Op::kBackwardWeight, residue.stage, micro_batch});
      }
    } else if (next_weight < weights.size()) {
      order.push_back(weights[next_weight++]);
    }
  }
  return order;
}

}  // namespace

Schedule RepeatVPattern(absl::string_view name, const Shape& shape,
                        absl::Span<const VSlots> slots) {
  Schedule schedule =
      EmptySchedule(name, VPlacement({.ranks = shape.ranks, .chunks = 2}),
                    shape.micro_batches);
  for (int r = 0; r < shape.ranks; ++r) {
    schedule.orders[r] = RankOrder(shape, r, slots[r]);
  }
  return schedule;
}

}  // namespace penstock::coordinator::schedule
