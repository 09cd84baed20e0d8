#include "tests/coordinator/schedule/order_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::coordinator::schedule {
namespace {

using Key = std::tuple<Op, int, int>;  // Operation, stage, micro-batch.

bool IsPlacement(const Placement& placement) {
  std::map<int, int> stages;  // (rank): how many.
  for (const int rank : placement.rank_of_stage) ++stages[rank];
  if (stages.empty() || static_cast<int>(stages.size()) != placement.ranks) {
    return false;
  }
  for (const auto& [rank, count] : stages) {
    if (rank < 0 || rank >= placement.ranks ||
        count != stages.begin()->second) {
      return false;
    }
  }
  return true;
}

// Everything once, on its rank, weight gradients in ascending order, each
// edge's messages sent and taken in one order.
bool IsComplete(const Schedule& schedule) {
  std::multiset<Key> commands;
  // (stage, forward): micro-batches, in the order of the row.
  std::map<std::pair<int, bool>, std::vector<int>> sequence;
  std::map<int, std::vector<int>> weights;
  for (int r = 0; r < schedule.ranks(); ++r) {
    for (const Command& c : schedule.orders[r]) {
      if (c.stage < 0 || c.stage >= schedule.stages()) return false;
      if (schedule.placement.rank_of(c.stage) != r) return false;
      commands.insert({c.op, c.stage, c.micro_batch});
      if (c.op == Op::kForward || ProducesInputGradient(c.op)) {
        sequence[{c.stage, c.op == Op::kForward}].push_back(c.micro_batch);
      }
      if (ProducesWeightGradient(c.op)) {
        weights[c.stage].push_back(c.micro_batch);
      }
    }
  }
  size_t expected = 0;
  for (int s = 0; s < schedule.stages(); ++s) {
    for (int m = 0; m < schedule.micro_batches; ++m) {
      const auto once = [&](Op op) { return commands.count({op, s, m}) == 1; };
      if (!once(Op::kForward)) return false;
      const bool full = once(Op::kBackward);
      const bool split = once(Op::kBackwardInput) && once(Op::kBackwardWeight);
      if (full == split) return false;
      expected += full ? 2 : 3;
    }
    if (!std::is_sorted(weights[s].begin(), weights[s].end())) return false;
  }
  if (commands.size() != expected) return false;
  for (int s = 0; s + 1 < schedule.stages(); ++s) {
    if (schedule.placement.same_rank(s, s + 1)) continue;
    for (const bool forward : {true, false}) {
      if (sequence[{s, forward}] != sequence[{s + 1, forward}]) return false;
    }
  }
  return true;
}

// Runs whatever can run until nothing can.
bool RunsToItsEnd(const Schedule& schedule) {
  std::set<Key> done;
  std::vector<size_t> next(schedule.ranks(), 0);
  const auto has = [&](Op op, int s, int m) {
    return done.count({op, s, m}) > 0;
  };
  const auto has_input_gradient = [&](int s, int m) {
    return has(Op::kBackward, s, m) || has(Op::kBackwardInput, s, m);
  };
  const auto ready = [&](const Command& c) {
    const int s = c.stage;
    const int m = c.micro_batch;
    if (c.op == Op::kForward) return s == 0 || has(Op::kForward, s - 1, m);
    if (c.op == Op::kBackwardWeight) return has(Op::kBackwardInput, s, m);
    return has(Op::kForward, s, m) &&
           (s + 1 == schedule.stages() || has_input_gradient(s + 1, m));
  };
  for (bool any = true; any;) {
    any = false;
    for (int r = 0; r < schedule.ranks(); ++r) {
      const std::vector<Command>& order = schedule.orders[r];
      for (; next[r] < order.size() && ready(order[next[r]]); ++next[r]) {
        const Command& c = order[next[r]];
        done.insert({c.op, c.stage, c.micro_batch});
        any = true;
      }
    }
  }
  for (int r = 0; r < schedule.ranks(); ++r) {
    if (next[r] < schedule.orders[r].size()) return false;
  }
  return true;
}

}  // namespace

bool IsCorrect(const Schedule& schedule) {
  return IsPlacement(schedule.placement) && schedule.micro_batches >= 1 &&
         static_cast<int>(schedule.orders.size()) == schedule.ranks() &&
         IsComplete(schedule) && RunsToItsEnd(schedule);
}

}  // namespace penstock::coordinator::schedule
