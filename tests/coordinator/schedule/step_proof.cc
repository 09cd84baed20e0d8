#include "tests/coordinator/schedule/step_proof.h"

#include <algorithm>
#include <limits>

#include "common/log/log.h"
#include "tests/coordinator/schedule/command_kinds.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kMostRounds = 20;
// A round that narrows all windows together by less, in steps, is the last.
constexpr double kLeastMove = 1e-4;
constexpr double kRounding = 1e-10;

}  // namespace

StepProof::StepProof(const OracleSetting& setting)
    : micro_batches_(setting.micro_batches),
      buffers_(setting.send_buffers),
      latency_(setting.costs.latency),
      sequences_(setting.micro_batches) {
  const int ranks = static_cast<int>(setting.costs.stages.size());
  for (int s = 0; s < ranks; ++s) {
    const StageTimes& times = setting.costs.stages[s];
    RankCommands rank{
        .times = {times.forward, times.backward_input, times.backward_weight},
        .limit = std::numeric_limits<int64_t>::max()};
    if (!setting.memory.stages.empty()) rank.bytes = setting.memory.stages[s];
    if (!setting.memory.limits.empty()) rank.limit = setting.memory.limits[s];
    CHECK(!times.backward.has_value() &&
          rank.bytes.held_until_weight <= rank.bytes.held_until_input)
        << "rank " << s << " may be better off with B";
    // Sequences do not know when the command before the last of a kind ended.
    if (buffers_ == 1) {
      rank.gaps = {s + 1 < ranks ? latency_ : 0.0, s > 0 ? latency_ : 0.0};
    }
    ranks_.push_back(rank);
  }
}

bool StepProof::NoneTakesAtMost(double step) {
  slack_ = step * kRounding;
  windows_.assign(ranks_.size(), {});
  for (RankWindows& rank : windows_) {
    for (int kind = 0; kind < kKinds; ++kind) {
      rank.earliest[kind].assign(micro_batches_, 0);
      rank.latest[kind].assign(micro_batches_, step);
    }
  }
  const int ranks = static_cast<int>(ranks_.size());
  PassOnEarliest();
  PassOnLatest();
  for (int round = 0; round < kMostRounds; ++round) {
    moved_ = 0;
    // Down the pipeline and up again.
    for (int i = 0; i < 2 * ranks; ++i) {
      if (!Tighten(i < ranks ? i : 2 * ranks - 1 - i)) return true;
      PassOnEarliest();
      PassOnLatest();
    }
    if (moved_ < kLeastMove * step) break;
  }
  return false;
}

void StepProof::Raise(double value, double* earliest) {
  if (value <= *earliest) return;
  if (value > *earliest + slack_) moved_ += value - *earliest;
  *earliest = value;
}

void StepProof::Lower(double value, double* latest) {
  if (value >= *latest) return;
  if (value < *latest - slack_) moved_ += *latest - value;
  *latest = value;
}

bool StepProof::Tighten(int s) {
  RankWindows narrowed = windows_[s];
  if (!sequences_.Narrow(ranks_[s], slack_, &narrowed)) return false;
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int m = 0; m < micro_batches_; ++m) {
      Raise(narrowed.earliest[kind][m], &windows_[s].earliest[kind][m]);
      Lower(narrowed.latest[kind][m], &windows_[s].latest[kind][m]);
    }
  }
  return true;
}

// Calls visit(after_s, after_kind, after_m, delay) for each command that must
// start `delay` after the end of this one. What memory asks sequences know.
template <typename Visit>
void StepProof::ForEachWait(int s, int kind, int m, const Visit& visit) const {
  const int ranks = static_cast<int>(ranks_.size());
  const bool sends = (kind == kF && s + 1 < ranks) || (kind == kI && s > 0);
  if (sends) visit(kind == kF ? s + 1 : s - 1, kind, m, latency_);
  if (kind != kW) visit(s, kind + 1, m, 0.0);
  if (m + 1 < micro_batches_) visit(s, kind, m + 1, 0.0);
  if (sends && m + buffers_ < micro_batches_) {
    visit(s, kind, m + buffers_, latency_);
  }
}

void StepProof::PassOnEarliest() {
  const int ranks = static_cast<int>(ranks_.size());
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int i = 0; i < ranks; ++i) {
      const int s = kind == kF ? i : ranks - 1 - i;
      for (int m = 0; m < micro_batches_; ++m) {
        const double end =
            windows_[s].earliest[kind][m] + ranks_[s].times[kind];
        ForEachWait(s, kind, m, [&](int s2, int kind2, int m2, double delay) {
          Raise(end + delay, &windows_[s2].earliest[kind2][m2]);
        });
      }
    }
  }
}

void StepProof::PassOnLatest() {
  const int ranks = static_cast<int>(ranks_.size());
  for (int kind = kKinds - 1; kind >= 0; --kind) {
    for (int i = 0; i < ranks; ++i) {
      const int s = kind == kF ? ranks - 1 - i : i;
      for (int m = micro_batches_ - 1; m >= 0; --m) {
        ForEachWait(s, kind, m, [&](int s2, int kind2, int m2, double delay) {
          Lower(
              windows_[s2].latest[kind2][m2] - ranks_[s2].times[kind2] - delay,
              &windows_[s].latest[kind][m]);
        });
      }
    }
  }
}

}  // namespace penstock::coordinator::schedule
