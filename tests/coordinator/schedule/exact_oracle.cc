#include "tests/coordinator/schedule/exact_oracle.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "tests/coordinator/schedule/exact_oracle_node.h"
#include "tests/coordinator/schedule/exact_oracle_windows.h"

namespace penstock::coordinator::schedule {
namespace oracle {
namespace {

constexpr size_t kMostLabels = 3'000'000;

class Search {
 public:
  Search(const OracleSetting& setting, const OracleSearch& search)
      : pipeline_(setting),
        windows_(pipeline_),
        most_nodes_(search.most_nodes),
        best_(search.upper_bound) {}

  Optimum Run() {
    // The step of one micro-batch after the other is possible.
    double serial = 0;
    for (int s = 0; s < pipeline_.ranks; ++s) {
      serial += pipeline_.time[s][kF] + pipeline_.time[s][kI] +
                pipeline_.time[s][kW] + 2 * pipeline_.latency;
    }
    serial *= pipeline_.micro_batches * 1.0 + 1;
    best_ = std::min(best_, serial);
    const double bound = RootBound(best_);
    SetTarget();
    const Node root = Root(target_.step);
    rows_.assign(pipeline_.ranks, {});
    const bool whole = target_.step < bound || Branch(root);
    Optimum result{.makespan = best_,
                   .proved = whole,
                   .lower_bound = whole ? best_ : std::min(bound, best_),
                   .order = std::nullopt,
                   .nodes = nodes_};
    if (!best_rows_.empty()) {
      result.order =
          Schedule{.name = "optimum",
                   .placement = LoopPlacement({.ranks = pipeline_.ranks}),
                   .micro_batches = pipeline_.micro_batches,
                   .orders = best_rows_};
    }
    return result;
  }

 private:
  void SetTarget() {
    const double step = best_ * (1 - kOracleTolerance);
    target_ = {.step = step, .slack = step * kOracleTolerance * 1e-3};
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
      const double step = low + (high - low) / 2;
      Node root = Root(step);
      const Target target{.step = step, .slack = step * 1e-12};
      (windows_.Tighten(&root, target, 1000) ? high : low) = step;
    }
    return low;
  }

  // Tries everything that can follow. False: the budget ended before.
  bool Branch(const Node& given) {
    if (++nodes_ > most_nodes_) return false;
    Node node = given;
    if (KnownToFail(node) || !windows_.Tighten(&node, target_, 6)) return true;
    const Next first = FirstToEnd(node);
    if (first.rank < 0) {
      Finish(node);
      return true;
    }
    const int rank = first.rank;
    const std::vector<int> ways = WaysBefore(node, first);
    for (const int way : ways) {
      if (!Branch(With(node, rank, way))) return false;
    }
    // Where F or I take more memory than they give back, to wait with them
    // can be better: something that is not ready yet comes next.
    const StageBytes& bytes = pipeline_.bytes[rank];
    if (bytes.held_until_weight > bytes.held_until_input &&
        (first.way == kF || first.way == kI)) {
      Node waits = node;
      for (const int way : ways) waits.not_next[rank] |= 1 << way;
      if (!Branch(waits)) return false;
    }
    Remember(given);
    return true;
  }

  // A command that may be a rank's next, and when it would end.
  struct Next {
    int rank = -1;
    int way = 0;
    double end = kInfinity;
  };

  // Of all ranks the one that could end first; rank -1: there is none.
  Next FirstToEnd(const Node& node) const {
    Next first;
    for (int s = 0; s < pipeline_.ranks; ++s) {
      for (int way = 0; way < kWays; ++way) {
        if (!pipeline_.MayBeNext(node, s, node.done[s], way)) continue;
        const double end =
            pipeline_.StartOf(node, s, way) + pipeline_.time[s][way];
        if (end < first.end) first = {.rank = s, .way = way, .end = end};
      }
    }
    return first;
  }

  // It and what could start on its rank before it ends, the most urgent first.
  std::vector<int> WaysBefore(const Node& node, const Next& first) const {
    const int rank = first.rank;
    std::vector<std::pair<double, int>> by_latest_end;
    for (int way = 0; way < kWays; ++way) {
      if (!pipeline_.MayBeNext(node, rank, node.done[rank], way)) continue;
      if (way == first.way || pipeline_.StartOf(node, rank, way) < first.end) {
        const int kind = way == kB ? kI : way;
        by_latest_end.emplace_back(
            node.latest[rank][kind][node.done[rank][kind]], way);
      }
    }
    std::sort(by_latest_end.begin(), by_latest_end.end());
    std::vector<int> ways;
    for (const auto& [latest, way] : by_latest_end) ways.push_back(way);
    return ways;
  }

  // Nothing may follow: a whole schedule, or decisions that lead nowhere.
  void Finish(const Node& node) {
    for (int s = 0; s < pipeline_.ranks; ++s) {
      if (node.done[s][kW] < pipeline_.micro_batches) return;
    }
    best_ = *std::max_element(node.ready.begin(), node.ready.end());
    best_rows_ = rows_;
    SetTarget();
  }

  // The node after the next command of that way on `rank`. Keeps rows_.
  Node With(const Node& node, int rank, int way) {
    Node child = node;
    const double end =
        pipeline_.StartOf(node, rank, way) + pipeline_.time[rank][way];
    const Counts& done = node.done[rank];
    child.done[rank] = After(done, way);
    for (int k = 0; k < kKinds; ++k) {
      if (child.done[rank][k] == done[k]) continue;
      child.earliest[rank][k][done[k]] = end - pipeline_.time[rank][k];
    }
    child.ready[rank] = end;
    child.not_next[rank] = 0;
    std::vector<Command>& row = rows_[rank];
    // How many commands the node has: its row may be longer by now.
    while (!row.empty() && !IsDone(done, row.back())) row.pop_back();
    row.push_back({kOps[way], rank, done[way == kB ? kI : way]});
    return child;
  }

  static bool IsDone(const Counts& done, const Command& c) {
    const int kind = c.op == Op::kForward          ? kF
                     : ProducesInputGradient(c.op) ? kI
                                                   : kW;
    return c.micro_batch < done[kind];
  }

  // What of a node's past its future depends on: counts and decisions,
  uint64_t Key(const Node& node) const {
    uint64_t key = 0;
    for (int s = 0; s < pipeline_.ranks; ++s) {
      for (const int count : node.done[s]) key = key * 16 + count;
      key = key * 16 + node.not_next[s];
    }
    return key;
  }
  // and times, each the better the smaller.
  std::vector<double> Label(const Node& node) const {
    std::vector<double> label;
    for (int s = 0; s < pipeline_.ranks; ++s) {
      label.push_back(node.ready[s]);
      for (const int k : {kF, kI}) {
        const int source = k == kF ? s - 1 : s + 1;
        const int next = node.done[s][k];
        if (source >= 0 && source < pipeline_.ranks) {
          for (int m = next; m < node.done[source][k]; ++m) {
            label.push_back(
                std::max(node.ready[s], node.earliest[source][k][m] +
                                            pipeline_.time[source][k] +
                                            pipeline_.latency));
          }
        }
        if (!pipeline_.Sends(s, k) || pipeline_.latency == 0) continue;
        for (int m = std::max(0, next - pipeline_.buffers); m < next; ++m) {
          label.push_back(std::max(node.ready[s], node.earliest[s][k][m] +
                                                      pipeline_.time[s][k] +
                                                      pipeline_.latency));
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

  const Pipeline pipeline_;
  Windows windows_;
  const int64_t most_nodes_;
  double best_;
  Target target_;  // Only steps of at most this are looked for.
  std::vector<std::vector<Command>> rows_;  // Of the branch that is looked at.
  std::vector<std::vector<Command>> best_rows_;
  int64_t nodes_ = 0;
  std::unordered_map<uint64_t, std::vector<std::vector<double>>> failed_;
  size_t labels_ = 0;
};

}  // namespace
}  // namespace oracle

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
  for (const StageTimes& times : setting.costs.stages) {
    if (times.of(Op::kBackward) <
        std::max(times.backward_input, times.backward_weight)) {
      return absl::InvalidArgumentError(
          "exact oracle: a B is shorter than its I or its W");
    }
  }
  RETURN_IF_ERROR(CheckMemory(setting.memory, ranks, ranks));
  for (int s = 0; s < ranks && !setting.memory.limits.empty(); ++s) {
    const StageBytes bytes =
        setting.memory.stages.empty() ? StageBytes{} : setting.memory.stages[s];
    if (setting.memory.limits[s] < bytes.held_until_input) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "exact oracle: rank ", s, " needs ", bytes.held_until_input,
          " bytes for one micro-batch, its limit is ",
          setting.memory.limits[s]));
    }
  }
  return oracle::Search(setting, search).Run();
}

}  // namespace penstock::coordinator::schedule
