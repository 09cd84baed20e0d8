#include "coordinator/schedule/forward_order.h"

#include <algorithm>

namespace penstock::coordinator::schedule {
namespace {

// A group's forwards on all ranks, run without times: whatever can go on does.
class ForwardRun {
 public:
  ForwardRun(const LoweredProgram& program, int group)
      : placement_(program.placement), next_(program.ranks(), 0) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      orders_.push_back(ForwardOrder(program, rank, group, group));
    }
    for (const StageSlots& stage : program.stages) {
      taken_.emplace_back(stage.slots, false);
    }
    sent_.assign(program.stages.size(), 0);
    delivered_.assign(program.stages.size(), 0);
    buffers_.assign(program.stages.size(), 0);
    for (const Edge& edge : program.edges) {
      if (edge.kind == EdgeKind::kActivation) {
        buffers_[edge.target_stage] = edge.send_buffers;
      }
    }
  }

  bool Finishes() && {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < placement_.ranks; ++rank) {
        while (Advance(rank)) moved = true;
      }
    }
    for (int rank = 0; rank < placement_.ranks; ++rank) {
      if (next_[rank] < orders_[rank].size()) return false;
    }
    return true;
  }

 private:
  bool Local(int stage) const {
    return stage > 0 && placement_.same_rank(stage - 1, stage);
  }

  // Runs the rank's next forward, or returns false where it must wait.
  bool Advance(int rank) {
    if (next_[rank] == orders_[rank].size()) return false;
    const auto [op, stage, micro_batch] = orders_[rank][next_[rank]];
    const int to = stage + 1;
    const bool sends = to < placement_.stages();
    if (stage > 0 && delivered_[stage] <= micro_batch) return false;
    if (sends && Local(to) && Taken(to, micro_batch)) return false;
    if (sends && !Local(to) && sent_[to] - delivered_[to] >= buffers_[to]) {
      return false;
    }
    ++next_[rank];
    Taken(stage, micro_batch) = false;
    if (sends) {
      ++sent_[to];
      Deliver(to);
    }
    Deliver(stage);  // Its slot is free for the next message.
    return true;
  }

  // Moves what was sent to `stage` into its slots, in order.
  void Deliver(int stage) {
    while (delivered_[stage] < sent_[stage] &&
           !Taken(stage, delivered_[stage])) {
      Taken(stage, delivered_[stage]++) = true;
    }
  }

  std::vector<bool>::reference Taken(int stage, int micro_batch) {
    return taken_[stage][micro_batch % taken_[stage].size()];
  }

  const Placement& placement_;
  std::vector<std::vector<Command>> orders_;
  std::vector<size_t> next_;              // (rank)
  std::vector<std::vector<bool>> taken_;  // (stage, slot)
  // Micro-batches, in order, by the stage that they go into.
  std::vector<int> sent_, delivered_;
  std::vector<int> buffers_;  // Of the edge into the stage; 0: there is none.
};

}  // namespace

std::vector<Command> ForwardOrder(const LoweredProgram& program, int rank,
                                  int micro_batches, int group) {
  std::vector<Command> order;
  const std::vector<int> stages = StagesOfRank(program.placement, rank);
  for (int first = 0; first < micro_batches; first += group) {
    const int end = std::min(first + group, micro_batches);
    for (const int stage : stages) {
      for (int m = first; m < end; ++m) {
        order.push_back({Op::kForward, stage, m});
      }
    }
  }
  return order;
}

int ForwardGroup(const LoweredProgram& program) {
  if (program.placement.stages() == program.ranks()) return 1;
  int group = program.ranks();
  while (group > 1 && !ForwardRun(program, group).Finishes()) {
    --group;
  }
  return group;
}

}  // namespace penstock::coordinator::schedule
