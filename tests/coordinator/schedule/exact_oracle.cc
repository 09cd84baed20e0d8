#include "tests/coordinator/schedule/exact_oracle.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kF = 0, kI = 1, kW = 2, kKinds = 3;
constexpr Op kOps[kKinds] = {Op::kForward, Op::kBackwardInput,
                             Op::kBackwardWeight};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMost = kOracleMicroBatches;
constexpr int kSide = kMost + 1;
constexpr size_t kMostLabels = 3'000'000;

// (rank, kind, micro-batch)
using Times =
    std::array<std::array<std::array<double, kMost>, kKinds>, kOracleRanks>;

// Commands done on one rank.
using Counts = std::array<int, kKinds>;

// A partial schedule: a prefix of each rank's row with its times, and by when
// the other commands can start and must end. Of done commands `earliest` is the
// start and `latest` at least the end.
struct Node {
  std::array<Counts, kOracleRanks> done = {};
  std::array<double, kOracleRanks> ready = {};  // End of the rank's last.
  // Bits of kinds that must not come next, by decision (see Branch).
  std::array<int, kOracleRanks> not_next = {};
  Times earliest = {};
  Times latest = {};
};

class Search {
 public:
  Search(const OracleSetting& setting, const OracleSearch& search)
      : ranks_(static_cast<int>(setting.costs.stages.size())),
        micro_batches_(setting.micro_batches),
        buffers_(setting.send_buffers),
        latency_(setting.costs.latency),
        most_nodes_(search.most_nodes),
        best_(search.upper_bound) {
    for (int s = 0; s < ranks_; ++s) {
      for (int k = 0; k < kKinds; ++k) {
        time_[s][k] = setting.costs.stages[s].of(kOps[k]);
      }
      if (!setting.memory.stages.empty()) bytes_[s] = setting.memory.stages[s];
      limit_[s] = setting.memory.limits.empty()
                      ? std::numeric_limits<int64_t>::max()
                      : setting.memory.limits[s];
    }
  }

  Optimum Run() {
    // The step of one micro-batch after the other is possible.
    double serial = 0;
    for (int s = 0; s < ranks_; ++s) {
      serial += time_[s][kF] + time_[s][kI] + time_[s][kW] + 2 * latency_;
    }
    serial *= micro_batches_ * 1.0 + 1;
    best_ = std::min(best_, serial);
    const double bound = RootBound(best_);
    SetTarget();
    const Node root = Root(target_);
    rows_.assign(ranks_, {});
    const bool whole = target_ < bound || Branch(root);
    Optimum result{.makespan = best_,
                   .proved = whole,
                   .lower_bound = whole ? best_ : std::min(bound, best_),
                   .order = std::nullopt,
                   .nodes = nodes_};
    if (!best_rows_.empty()) {
      result.order = Schedule{.name = "optimum",
                              .placement = LoopPlacement({.ranks = ranks_}),
                              .micro_batches = micro_batches_,
                              .orders = best_rows_};
    }
    return result;
  }

 private:
  void SetTarget() {
    target_ = best_ * (1 - kOracleTolerance);
    slack_ = target_ * kOracleTolerance * 1e-3;
  }

  Node Root(double latest) const {
    Node root;
    for (auto& rank : root.latest) {
      for (auto& kind : rank) kind.fill(latest);
    }
    return root;
  }

  // The largest step for which the root alone shows that none is as short.
  double RootBound(double high) {
    double low = 0;
    for (int i = 0; i < 60 && high - low > high * 1e-10; ++i) {
      target_ = low + (high - low) / 2;
      slack_ = target_ * 1e-12;
      Node root = Root(target_);
      (Tighten(&root, 1000) ? high : low) = target_;
    }
    return low;
  }

  bool Fits(int s, const Counts& done, int kind) const {
    if (kind == kW) return true;
    const int64_t held = (done[kF] - done[kI]) * bytes_[s].held_until_input +
                         (done[kI] - done[kW]) * bytes_[s].held_until_weight;
    const int64_t more =
        kind == kF ? bytes_[s].held_until_input
                   : std::max<int64_t>(0, bytes_[s].held_until_weight -
                                              bytes_[s].held_until_input);
    return held + more <= limit_[s];
  }

  // Whether the rank's own row allows `kind` next.
  bool MayFollow(int s, const Counts& done, int kind) const {
    const int before = kind == kF ? micro_batches_ : done[kind - 1];
    return done[kind] < before && Fits(s, done, kind);
  }

  // When the rank's next command of `kind` can start, or infinity where what it
  // takes from another rank is not done yet.
  double StartOf(const Node& node, int s, int kind) const {
    const int m = node.done[s][kind];
    double start = node.ready[s];
    const int source = kind == kF ? s - 1 : kind == kI ? s + 1 : -1;
    if (source >= 0 && source < ranks_) {
      if (node.done[source][kind] <= m) return kInfinity;
      start = std::max(start, node.earliest[source][kind][m] +
                                  time_[source][kind] + latency_);
    }
    if (Sends(s, kind) && m >= buffers_) {
      start = std::max(start, node.earliest[s][kind][m - buffers_] +
                                  time_[s][kind] + latency_);
    }
    return start;
  }

  bool Sends(int s, int kind) const {
    return (kind == kF && s + 1 < ranks_) || (kind == kI && s > 0);
  }

  // Tries everything that can follow. False: the budget ended before.
  bool Branch(const Node& given) {
    if (++nodes_ > most_nodes_) return false;
    Node node = given;
    if (KnownToFail(node) || !Tighten(&node, 6)) return true;
    // The rank whose next command could end first.
    int rank = -1;
    int first_kind = 0;
    double first_end = kInfinity;
    for (int s = 0; s < ranks_; ++s) {
      for (int k = 0; k < kKinds; ++k) {
        if (!MayFollow(s, node.done[s], k) || (node.not_next[s] >> k & 1)) {
          continue;
        }
        const double end = StartOf(node, s, k) + time_[s][k];
        if (end < first_end) {
          first_end = end;
          rank = s;
          first_kind = k;
        }
      }
    }
    if (rank < 0) {
      for (int s = 0; s < ranks_; ++s) {
        if (node.done[s][kW] < micro_batches_) return true;  // Nothing may.
      }
      best_ = *std::max_element(node.ready.begin(), node.ready.end());
      best_rows_ = rows_;
      SetTarget();
      return true;
    }
    std::vector<std::pair<double, int>> children;  // (latest end, kind)
    for (int k = 0; k < kKinds; ++k) {
      if (!MayFollow(rank, node.done[rank], k) ||
          (node.not_next[rank] >> k & 1)) {
        continue;
      }
      if (k == first_kind || StartOf(node, rank, k) < first_end) {
        children.emplace_back(node.latest[rank][k][node.done[rank][k]], k);
      }
    }
    std::sort(children.begin(), children.end());
    for (const auto& [latest, k] : children) {
      if (!Branch(With(node, rank, k))) return false;
    }
    // Where F or I take more memory than they give back, to wait with them
    // can be better: something that is not ready yet comes next.
    if (bytes_[rank].held_until_weight > bytes_[rank].held_until_input &&
        first_kind != kW) {
      Node waits = node;
      for (const auto& [latest, k] : children) waits.not_next[rank] |= 1 << k;
      if (!Branch(waits)) return false;
    }
    Remember(given);
    return true;
  }

  // The node after the next command of `kind` on `rank`. Keeps rows_.
  Node With(const Node& node, int rank, int kind) {
    Node child = node;
    const int m = child.done[rank][kind];
    const double start = StartOf(node, rank, kind);
    child.earliest[rank][kind][m] = start;
    child.ready[rank] = start + time_[rank][kind];
    ++child.done[rank][kind];
    child.not_next[rank] = 0;
    std::vector<Command>& row = rows_[rank];
    int length = 0;
    for (const int count : node.done[rank]) length += count;
    row.resize(length);
    row.push_back({kOps[kind], rank, m});
    return child;
  }

  // Raises `earliest` and lowers `latest`. False: no step of at most target_
  // begins like this.
  bool Tighten(Node* node, int most_rounds) {
    for (auto& rank : node->latest) {
      for (auto& kind : rank) {
        for (double& latest : kind) latest = std::min(latest, target_);
      }
    }
    for (int round = 0; round < most_rounds; ++round) {
      moved_ = false;
      PassOnEarliest(node);
      PassOnLatest(node);
      for (int s = 0; s < ranks_; ++s) {
        if (!TightenRank(node, s)) return false;
      }
      if (!moved_) break;
    }
    return true;
  }

  void Raise(Node* node, int s, int k, int m, double start) {
    if (m < node->done[s][k]) return;
    double& earliest = node->earliest[s][k][m];
    if (start > earliest) {
      moved_ |= start > earliest + slack_;
      earliest = start;
    }
  }
  void Lower(Node* node, int s, int k, int m, double end) {
    double& latest = node->latest[s][k][m];
    if (end < latest) {
      moved_ |= end < latest - slack_;
      latest = end;
    }
  }

  // Calls visit(s, k, m, after_s, after_k, after_m, delay) for each command and
  // one that must start `delay` after its end.
  template <typename Visit>
  void ForEachWait(int s, int k, int m, const Visit& visit) const {
    if (k == kF && s + 1 < ranks_) visit(s + 1, kF, m, latency_);
    if (k == kI && s > 0) visit(s - 1, kI, m, latency_);
    if (k == kF) visit(s, kI, m, 0.0);
    if (k == kI) visit(s, kW, m, 0.0);
    if (m + 1 < micro_batches_) visit(s, k, m + 1, 0.0);
    if (Sends(s, k) && m + buffers_ < micro_batches_) {
      visit(s, k, m + buffers_, latency_);
    }
  }

  void PassOnEarliest(Node* node) {
    for (int k = 0; k < kKinds; ++k) {
      for (int i = 0; i < ranks_; ++i) {
        const int s = k == kF ? i : ranks_ - 1 - i;
        for (int m = 0; m < micro_batches_; ++m) {
          const double end = node->earliest[s][k][m] + time_[s][k];
          ForEachWait(s, k, m, [&](int s2, int k2, int m2, double delay) {
            Raise(node, s2, k2, m2, end + delay);
          });
        }
      }
    }
  }
  void PassOnLatest(Node* node) {
    for (int k = kKinds - 1; k >= 0; --k) {
      for (int i = 0; i < ranks_; ++i) {
        const int s = k == kF ? ranks_ - 1 - i : i;
        for (int m = micro_batches_ - 1; m >= 0; --m) {
          ForEachWait(s, k, m, [&](int s2, int k2, int m2, double delay) {
            Lower(node, s, k, m,
                  node->latest[s2][k2][m2] - time_[s2][k2] - delay);
          });
        }
      }
    }
  }

  static int Index(const Counts& done) {
    return (done[kF] * kSide + done[kI]) * kSide + done[kW];
  }

  // Calls visit(counts) for all that follow from what is done, in an order in
  // which each comes after those that lead to it.
  template <typename Visit>
  void ForEachCounts(const Counts& done, const Visit& visit) const {
    for (int f = done[kF]; f <= micro_batches_; ++f) {
      for (int i = done[kI]; i <= f; ++i) {
        for (int w = done[kW]; w <= i; ++w) visit(Counts{f, i, w});
      }
    }
  }

  // One rank alone: over all its rows.
  bool TightenRank(Node* node, int s) {
    const Counts& done = node->done[s];
    for (int k = 0; k < kKinds; ++k) {
      for (int m = 0; m < done[k]; ++m) {
        if (node->earliest[s][k][m] + time_[s][k] >
            node->latest[s][k][m] + slack_) {
          return false;
        }
      }
    }
    // Earliest time with these counts done.
    visited_.clear();
    ForEachCounts(done, [&](const Counts& at) {
      soonest_[Index(at)] = kInfinity;
      latest_[Index(at)] = -kInfinity;
      visited_.push_back(at);
    });
    soonest_[Index(done)] = node->ready[s];
    const auto may = [&](const Counts& at, int k) {
      return MayFollow(s, at, k) &&
             (at != done || (node->not_next[s] >> k & 1) == 0);
    };
    for (const Counts& at : visited_) {
      const double now = soonest_[Index(at)];
      if (now == kInfinity) continue;
      for (int k = 0; k < kKinds; ++k) {
        if (!may(at, k)) continue;
        const double end =
            std::max(now, node->earliest[s][k][at[k]]) + time_[s][k];
        if (end > node->latest[s][k][at[k]] + slack_) continue;
        Counts next = at;
        ++next[k];
        double& soonest = soonest_[Index(next)];
        soonest = std::min(soonest, end);
      }
    }
    if (soonest_[Index(visited_.back())] == kInfinity) return false;
    // Latest time at which what is left can begin, and what is possible at all.
    Times& earliest = possible_earliest_;
    Times& latest = possible_latest_;
    for (int k = 0; k < kKinds; ++k) {
      earliest[s][k].fill(kInfinity);
      latest[s][k].fill(-kInfinity);
    }
    latest_[Index(visited_.back())] = kInfinity;
    for (auto i = visited_.rbegin(); i != visited_.rend(); ++i) {
      const Counts& at = *i;
      const double now = soonest_[Index(at)];
      if (now == kInfinity) continue;
      for (int k = 0; k < kKinds; ++k) {
        if (!may(at, k)) continue;
        Counts next = at;
        ++next[k];
        const int m = at[k];
        const double start = std::max(now, node->earliest[s][k][m]);
        const double end =
            std::min(latest_[Index(next)], node->latest[s][k][m]);
        if (start + time_[s][k] > end + slack_) continue;
        earliest[s][k][m] = std::min(earliest[s][k][m], start);
        latest[s][k][m] = std::max(latest[s][k][m], end);
        double& at_latest = latest_[Index(at)];
        at_latest = std::max(at_latest, end - time_[s][k]);
      }
    }
    for (int k = 0; k < kKinds; ++k) {
      for (int m = done[k]; m < micro_batches_; ++m) {
        if (earliest[s][k][m] == kInfinity) return false;
        Raise(node, s, k, m, earliest[s][k][m]);
        Lower(node, s, k, m, latest[s][k][m]);
      }
    }
    return true;
  }

  // What of a node's past its future depends on: counts and decisions,
  uint64_t Key(const Node& node) const {
    uint64_t key = 0;
    for (int s = 0; s < ranks_; ++s) {
      for (const int count : node.done[s]) key = key * 16 + count;
      key = key * 8 + node.not_next[s];
    }
    return key;
  }
  // and times, each the better the smaller.
  std::vector<double> Label(const Node& node) const {
    std::vector<double> label;
    for (int s = 0; s < ranks_; ++s) {
      label.push_back(node.ready[s]);
      for (const int k : {kF, kI}) {
        const int source = k == kF ? s - 1 : s + 1;
        const int next = node.done[s][k];
        if (source >= 0 && source < ranks_) {
          for (int m = next; m < node.done[source][k]; ++m) {
            label.push_back(std::max(
                node.ready[s],
                node.earliest[source][k][m] + time_[source][k] + latency_));
          }
        }
        if (!Sends(s, k) || latency_ == 0) continue;
        for (int m = std::max(0, next - buffers_); m < next; ++m) {
          label.push_back(std::max(
              node.ready[s], node.earliest[s][k][m] + time_[s][k] + latency_));
        }
      }
    }
    return label;
  }

  static bool NowhereLater(const std::vector<double>& a,
                           const std::vector<double>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  }

  bool KnownToFail(const Node& node) const {
    const auto failed = failed_.find(Key(node));
    if (failed == failed_.end()) return false;
    const std::vector<double> label = Label(node);
    return std::any_of(failed->second.begin(), failed->second.end(),
                       [&](const std::vector<double>& other) {
                         return NowhereLater(other, label);
                       });
  }

  // The step only gets shorter: what led to nothing once always does.
  void Remember(const Node& node) {
    if (labels_ >= kMostLabels) return;
    std::vector<double> label = Label(node);
    std::vector<std::vector<double>>& failed = failed_[Key(node)];
    labels_ -= failed.size();
    failed.erase(std::remove_if(failed.begin(), failed.end(),
                                [&](const std::vector<double>& other) {
                                  return NowhereLater(label, other);
                                }),
                 failed.end());
    failed.push_back(std::move(label));
    labels_ += failed.size();
  }

  const int ranks_;
  const int micro_batches_;
  const int buffers_;
  const double latency_;
  const int64_t most_nodes_;
  std::array<std::array<double, kKinds>, kOracleRanks> time_ = {};
  std::array<StageBytes, kOracleRanks> bytes_ = {};
  std::array<int64_t, kOracleRanks> limit_ = {};

  double best_;
  double target_ = 0;  // Only steps of at most this are looked for.
  double slack_ = 0;   // Rounding.
  std::vector<std::vector<Command>> rows_;  // Of the branch that is looked at.
  std::vector<std::vector<Command>> best_rows_;
  int64_t nodes_ = 0;
  std::unordered_map<uint64_t, std::vector<std::vector<double>>> failed_;
  size_t labels_ = 0;

  // Of Tighten and TightenRank, kept so that they are made once.
  bool moved_ = false;
  std::vector<Counts> visited_;
  std::array<double, kSide* kSide* kSide> soonest_ = {};
  std::array<double, kSide* kSide* kSide> latest_ = {};
  Times possible_earliest_ = {};
  Times possible_latest_ = {};
};

}  // namespace

absl::StatusOr<Optimum> FindOptimum(const OracleSetting& setting,
                                    const OracleSearch& search) {
  const int ranks = static_cast<int>(setting.costs.stages.size());
  if (ranks < 1 || ranks > kOracleRanks || setting.micro_batches < 1 ||
      setting.micro_batches > kOracleMicroBatches || setting.send_buffers < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "exact oracle: ", ranks, " ranks, ", setting.micro_batches,
        " micro-batches and ", setting.send_buffers, " send buffers"));
  }
  RETURN_IF_ERROR(CheckCosts(setting.costs, ranks));
  RETURN_IF_ERROR(CheckMemory(setting.memory, ranks, ranks));
  for (int s = 0; s < ranks && !setting.memory.limits.empty(); ++s) {
    const StageBytes bytes =
        setting.memory.stages.empty() ? StageBytes{} : setting.memory.stages[s];
    const int64_t one =
        std::max(bytes.held_until_input, bytes.held_until_weight);
    if (setting.memory.limits[s] < one) {
      return absl::ResourceExhaustedError(
          absl::StrCat("exact oracle: rank ", s, " needs ", one,
                       " bytes for one micro-batch, its limit is ",
                       setting.memory.limits[s]));
    }
  }
  return Search(setting, search).Run();
}

}  // namespace penstock::coordinator::schedule
