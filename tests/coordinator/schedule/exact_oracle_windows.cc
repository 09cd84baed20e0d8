#include "tests/coordinator/schedule/exact_oracle_windows.h"

#include <algorithm>

namespace penstock::coordinator::schedule::oracle {

bool Windows::Tighten(Node* node, const Target& target, int most_rounds) {
  slack_ = target.slack;
  for (auto& rank : node->latest) {
    for (auto& kind : rank) {
      for (double& latest : kind) latest = std::min(latest, target.step);
    }
  }
  for (int round = 0; round < most_rounds; ++round) {
    moved_ = false;
    PassOnEarliest(node);
    PassOnLatest(node);
    for (int s = 0; s < pipeline_.ranks; ++s) {
      if (!TightenRank(node, s)) return false;
    }
    if (!moved_) break;
  }
  return true;
}

void Windows::Raise(Node* node, int s, int k, int m, double start) {
  if (m < node->done[s][k]) return;
  double& earliest = node->earliest[s][k][m];
  if (start > earliest) {
    moved_ |= start > earliest + slack_;
    earliest = start;
  }
}

void Windows::Lower(Node* node, int s, int k, int m, double end) {
  double& latest = node->latest[s][k][m];
  if (end < latest) {
    moved_ |= end < latest - slack_;
    latest = end;
  }
}

// Calls visit(after_s, after_k, after_m, delay) for each command that must
// start `delay` after the end of this one. That W is after I only the rank's
// own rows know: a B ends both at once.
template <typename Visit>
void Windows::ForEachWait(int s, int k, int m, const Visit& visit) const {
  const Pipeline& p = pipeline_;
  if (k == kF && s + 1 < p.ranks) visit(s + 1, kF, m, p.latency);
  if (k == kI && s > 0) visit(s - 1, kI, m, p.latency);
  if (k == kF) visit(s, kI, m, 0.0);
  if (m + 1 < p.micro_batches) visit(s, k, m + 1, 0.0);
  if (p.Sends(s, k) && m + p.buffers < p.micro_batches) {
    visit(s, k, m + p.buffers, p.latency);
  }
}

void Windows::PassOnEarliest(Node* node) {
  for (int k = 0; k < kKinds; ++k) {
    for (int i = 0; i < pipeline_.ranks; ++i) {
      const int s = k == kF ? i : pipeline_.ranks - 1 - i;
      for (int m = 0; m < pipeline_.micro_batches; ++m) {
        const double end = node->earliest[s][k][m] + pipeline_.time[s][k];
        ForEachWait(s, k, m, [&](int s2, int k2, int m2, double delay) {
          Raise(node, s2, k2, m2, end + delay);
        });
      }
    }
  }
}

void Windows::PassOnLatest(Node* node) {
  for (int k = kKinds - 1; k >= 0; --k) {
    for (int i = 0; i < pipeline_.ranks; ++i) {
      const int s = k == kF ? pipeline_.ranks - 1 - i : i;
      for (int m = pipeline_.micro_batches - 1; m >= 0; --m) {
        ForEachWait(s, k, m, [&](int s2, int k2, int m2, double delay) {
          Lower(node, s, k, m,
                node->latest[s2][k2][m2] - pipeline_.time[s2][k2] - delay);
        });
      }
    }
  }
}

// When `way` starts at the earliest after the counts `at`.
double Windows::StartIn(const Node& node, int s, const Counts& at,
                        int way) const {
  const Pipeline& p = pipeline_;
  double start = soonest_[Index(at)];
  if (way != kB) return std::max(start, node.earliest[s][way][at[way]]);
  const int m = at[kI];
  for (const int k : {kI, kW}) {
    start =
        std::max(start, node.earliest[s][k][m] + p.time[s][k] - p.time[s][kB]);
  }
  const auto after_message = [&](int source, int number) {
    start = std::max(start, node.earliest[source][kI][number] +
                                p.time[source][kI] + p.latency);
  };
  if (s + 1 < p.ranks) after_message(s + 1, m);
  if (p.Sends(s, kI) && m >= p.buffers) after_message(s, m - p.buffers);
  return start;
}

// By when it must end.
double Windows::LatestEnd(const Node& node, int s, const Counts& at, int way) {
  if (way != kB) return node.latest[s][way][at[way]];
  return std::min(node.latest[s][kI][at[kI]], node.latest[s][kW][at[kW]]);
}

bool Windows::TightenRank(Node* node, int s) {
  if (!DoneCommandsAreOnTime(*node, s)) return false;
  FindSoonest(*node, s);
  if (soonest_[Index(reached_.back())] == kInfinity) return false;
  FindPossible(*node, s);
  for (int k = 0; k < kKinds; ++k) {
    for (int m = node->done[s][k]; m < pipeline_.micro_batches; ++m) {
      if (earliest_start_[k][m] == kInfinity) return false;
      Raise(node, s, k, m, earliest_start_[k][m]);
      Lower(node, s, k, m, latest_end_[k][m]);
    }
  }
  return true;
}

bool Windows::DoneCommandsAreOnTime(const Node& node, int s) const {
  for (int k = 0; k < kKinds; ++k) {
    for (int m = 0; m < node.done[s][k]; ++m) {
      if (node.earliest[s][k][m] + pipeline_.time[s][k] >
          node.latest[s][k][m] + slack_) {
        return false;
      }
    }
  }
  return true;
}

void Windows::FindSoonest(const Node& node, int s) {
  const Counts& done = node.done[s];
  reached_.clear();
  for (int f = done[kF]; f <= pipeline_.micro_batches; ++f) {
    for (int i = done[kI]; i <= f; ++i) {
      for (int w = done[kW]; w <= i; ++w) {
        reached_.push_back({f, i, w});
        soonest_[Index(reached_.back())] = kInfinity;
        latest_[Index(reached_.back())] = -kInfinity;
      }
    }
  }
  soonest_[Index(done)] = node.ready[s];
  for (const Counts& at : reached_) {
    if (soonest_[Index(at)] == kInfinity) continue;
    for (int way = 0; way < kWays; ++way) {
      if (!pipeline_.MayBeNext(node, s, at, way)) continue;
      const double end = StartIn(node, s, at, way) + pipeline_.time[s][way];
      if (end > LatestEnd(node, s, at, way) + slack_) continue;
      double& soonest = soonest_[Index(After(at, way))];
      soonest = std::min(soonest, end);
    }
  }
}

void Windows::FindPossible(const Node& node, int s) {
  for (int k = 0; k < kKinds; ++k) {
    earliest_start_[k].fill(kInfinity);
    latest_end_[k].fill(-kInfinity);
  }
  latest_[Index(reached_.back())] = kInfinity;
  for (auto i = reached_.rbegin(); i != reached_.rend(); ++i) {
    const Counts& at = *i;
    if (soonest_[Index(at)] == kInfinity) continue;
    for (int way = 0; way < kWays; ++way) {
      if (!pipeline_.MayBeNext(node, s, at, way)) continue;
      const Counts next = After(at, way);
      const double time = pipeline_.time[s][way];
      const double soonest = StartIn(node, s, at, way) + time;
      const double end =
          std::min(latest_[Index(next)], LatestEnd(node, s, at, way));
      if (soonest > end + slack_) continue;
      for (int k = 0; k < kKinds; ++k) {
        if (next[k] == at[k]) continue;
        double& earliest = earliest_start_[k][at[k]];
        earliest = std::min(earliest, soonest - pipeline_.time[s][k]);
        double& latest = latest_end_[k][at[k]];
        latest = std::max(latest, end);
      }
      double& begin = latest_[Index(at)];
      begin = std::max(begin, end - time);
    }
  }
}

}  // namespace penstock::coordinator::schedule::oracle
