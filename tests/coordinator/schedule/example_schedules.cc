#include "tests/coordinator/schedule/example_schedules.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::coordinator::schedule {
namespace {

Schedule Empty(const char* name, const Shape& shape, Placement placement) {
  Schedule schedule{.name = name,
                    .placement = std::move(placement),
                    .micro_batches = shape.micro_batches,
                    .orders = {}};
  schedule.orders.resize(shape.ranks);
  return schedule;
}

// Runs commands one by one in a global order that respects all dependencies.
class GlobalOrder {
 public:
  GlobalOrder(Schedule schedule, std::vector<int> forward_order,
              std::vector<bool> split)
      : schedule_(std::move(schedule)),
        forward_order_(std::move(forward_order)),
        split_(std::move(split)),
        forwards_(schedule_.stages(), 0),
        forward_done_(schedule_.stages() * schedule_.micro_batches, false),
        inputs_(schedule_.stages(), 0),
        weights_(schedule_.stages(), 0) {}

  // Commands that may run now on `rank`.
  std::vector<Command> Ready(int rank) const {
    std::vector<Command> ready;
    const int stages = schedule_.stages();
    const int micro_batches = schedule_.micro_batches;
    for (int s = 0; s < stages; ++s) {
      if (schedule_.placement.rank_of(s) != rank) continue;
      if (const int f = forwards_[s];
          f < micro_batches && (s == 0 || forwards_[s - 1] > f)) {
        ready.push_back({Op::kForward, s, forward_order_[f]});
      }
      if (const int i = inputs_[s]; i < micro_batches &&
                                    forward_done_[s * micro_batches + i] &&
                                    (s + 1 == stages || inputs_[s + 1] > i)) {
        if (split_[i]) {
          ready.push_back({Op::kBackwardInput, s, i});
        } else if (weights_[s] == i) {
          ready.push_back({Op::kBackward, s, i});
        }
      }
      if (weights_[s] < inputs_[s]) {
        ready.push_back({Op::kBackwardWeight, s, weights_[s]});
      }
    }
    return ready;
  }

  void Do(int rank, const Command& c) {
    schedule_.orders[rank].push_back(c);
    if (c.op == Op::kForward) {
      ++forwards_[c.stage];
      forward_done_[c.stage * schedule_.micro_batches + c.micro_batch] = true;
    }
    inputs_[c.stage] += ProducesInputGradient(c.op);
    weights_[c.stage] += ProducesWeightGradient(c.op);
  }

  Schedule Take() && { return std::move(schedule_); }

 private:
  Schedule schedule_;
  std::vector<int> forward_order_;
  std::vector<bool> split_;  // (micro-batch)
  std::vector<int> forwards_;
  std::vector<bool> forward_done_;
  std::vector<int> inputs_;
  std::vector<int> weights_;
};

std::vector<int> Ascending(int count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

Schedule LoopedBfs(const Shape& shape) {
  const int ranks = shape.ranks;
  const int chunks = shape.chunks;
  const int micro_batches = shape.micro_batches;
  Schedule schedule = Empty("looped-bfs", shape,
                            LoopPlacement({.ranks = ranks, .chunks = chunks}));
  for (int r = 0; r < ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    for (int c = 0; c < chunks; ++c) {
      for (int m = 0; m < micro_batches; ++m) {
        order.push_back({Op::kForward, c * ranks + r, m});
      }
    }
    for (int c = chunks - 1; c >= 0; --c) {
      for (int m = 0; m < micro_batches; ++m) {
        order.push_back({Op::kBackward, c * ranks + r, m});
      }
    }
  }
  return schedule;
}

Schedule InterleavedZb1p(const Shape& shape) {
  const int ranks = shape.ranks;
  const int chunks = shape.chunks;
  const int micro_batches = shape.micro_batches;
  Schedule schedule =
      Empty("zb1p", shape, LoopPlacement({.ranks = ranks, .chunks = chunks}));
  const int group = micro_batches / std::max(1, micro_batches / ranks);
  std::vector<std::pair<int, int>> sequence;  // (chunk, micro-batch)
  for (int begin = 0; begin < micro_batches; begin += group) {
    for (int c = 0; c < chunks; ++c) {
      for (int m = begin; m < std::min(micro_batches, begin + group); ++m) {
        sequence.emplace_back(c, m);
      }
    }
  }
  const int count = static_cast<int>(sequence.size());
  for (int r = 0; r < ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    const auto add = [&](Op op, int i) {
      const auto [c, m] = sequence[i];
      const int chunk = op == Op::kForward ? c : chunks - 1 - c;
      order.push_back({op, chunk * ranks + r, m});
    };
    const int warm_up = std::min((chunks - 1) * group + ranks - 1 - r, count);
    for (int i = 0; i < warm_up; ++i) add(Op::kForward, i);
    int weight = 0;
    for (int i = 0; i < count; ++i) {
      if (warm_up + i < count) add(Op::kForward, warm_up + i);
      add(Op::kBackwardInput, i);
      if (i >= r) add(Op::kBackwardWeight, weight++);
    }
    while (weight < count) add(Op::kBackwardWeight, weight++);
  }
  return schedule;
}

Schedule ZbH2(const Shape& shape) {
  const int ranks = shape.ranks;
  const int micro_batches = shape.micro_batches;
  Schedule schedule = Empty("zb-h2", shape, LoopPlacement({.ranks = ranks}));
  for (int r = 0; r < ranks; ++r) {
    std::vector<Command>& order = schedule.orders[r];
    int forward = 0;
    int weight = 0;
    while (forward < std::min(2 * (ranks - r) - 1, micro_batches)) {
      order.push_back({Op::kForward, r, forward++});
    }
    for (int i = 0; i < micro_batches; ++i) {
      order.push_back({Op::kBackwardInput, r, i});
      if (i >= 2 * r) order.push_back({Op::kBackwardWeight, r, weight++});
      if (forward < micro_batches) {
        order.push_back({Op::kForward, r, forward++});
      }
    }
    while (weight < micro_batches) {
      order.push_back({Op::kBackwardWeight, r, weight++});
    }
  }
  return schedule;
}

Schedule GreedyV(const Shape& shape) {
  GlobalOrder order(
      Empty("greedy-v", shape, VPlacement({.ranks = shape.ranks, .chunks = 2})),
      Ascending(shape.micro_batches),
      std::vector<bool>(shape.micro_batches, true));
  for (bool any = true; any;) {
    any = false;
    for (int r = 0; r < shape.ranks; ++r) {
      const std::vector<Command> ready = order.Ready(r);
      if (ready.empty()) continue;
      const auto depth = [](const Command& c) {
        return std::make_pair(c.op != Op::kForward,
                              c.op == Op::kForward ? c.stage : -c.stage);
      };
      order.Do(r, *std::max_element(ready.begin(), ready.end(),
                                    [&](const Command& a, const Command& b) {
                                      return depth(a) < depth(b);
                                    }));
      any = true;
    }
  }
  return std::move(order).Take();
}

Schedule RandomSchedule(const Shape& shape, const RandomOptions& options,
                        std::mt19937* random) {
  Placement placement =
      (*random)() % 2 == 0
          ? LoopPlacement({.ranks = shape.ranks, .chunks = shape.chunks})
          : VPlacement({.ranks = shape.ranks, .chunks = shape.chunks});
  if (options.shuffle_placement) {
    std::shuffle(placement.rank_of_stage.begin(), placement.rank_of_stage.end(),
                 *random);
  }
  std::vector<int> forwards = Ascending(shape.micro_batches);
  if (options.shuffle_forwards) {
    std::shuffle(forwards.begin(), forwards.end(), *random);
  }
  std::vector<bool> split;
  for (int m = 0; m < shape.micro_batches; ++m) {
    split.push_back((*random)() % 2 == 0);
  }
  GlobalOrder order(Empty("random", shape, placement), std::move(forwards),
                    std::move(split));
  const int left_out = (*random)() % 3;  // How eagerly W is put off.
  while (true) {
    std::vector<std::pair<int, Command>> ready;
    for (int r = 0; r < shape.ranks; ++r) {
      for (const Command& c : order.Ready(r)) ready.emplace_back(r, c);
    }
    if (ready.empty()) return std::move(order).Take();
    for (int attempt = 0;; ++attempt) {
      const auto& [rank, c] = ready[(*random)() % ready.size()];
      if (c.op == Op::kBackwardWeight && attempt < left_out) continue;
      order.Do(rank, c);
      break;
    }
  }
}

double RandomEighths(std::mt19937* random, int least, int most) {
  return (least + static_cast<int>((*random)() % (most - least + 1))) / 8.0;
}

}  // namespace penstock::coordinator::schedule
