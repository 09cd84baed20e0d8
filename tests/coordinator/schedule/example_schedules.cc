#include "tests/coordinator/schedule/example_schedules.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"

namespace penstock::coordinator::schedule {
namespace {

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

std::vector<Schedule> EverySchedule(int ranks, int micro_batches) {
  std::vector<Schedule> schedules;
  for (const absl::string_view name : GeneratorNames()) {
    absl::StatusOr<Schedule> schedule = Generate(
        name, {.ranks = ranks,
               .chunks = FindSchedule(name)->default_chunks.value_or(1),
               .micro_batches = micro_batches});
    if (schedule.ok()) schedules.push_back(*std::move(schedule));
  }
  return schedules;
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
  GlobalOrder order(EmptySchedule("random", placement, shape.micro_batches),
                    std::move(forwards), std::move(split));
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
