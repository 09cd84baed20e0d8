#include "tests/coordinator/schedule/step_proof_sequences.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/coordinator/schedule/command_kinds.h"

namespace penstock::coordinator::schedule {
namespace {

// Of one front; more are merged, which only makes more sequences possible.
constexpr size_t kMostPoints = 5;

}  // namespace

RankSequences::RankSequences(int micro_batches)
    : micro_batches_(micro_batches) {
  const size_t last = Index({micro_batches, micro_batches, micro_batches});
  begun_.resize(last + 1);
  left_.resize(last + 1);
}

bool RankSequences::MayFollow(const Counts& at, int kind) const {
  if (kind == kI) return at[kI] < at[kF];
  if (kind == kW) return at[kW] < at[kI];
  return at[kF] < micro_batches_ &&
         (at[kF] - at[kI] + 1) * rank_.bytes.held_until_input +
                 (at[kI] - at[kW]) * rank_.bytes.held_until_weight <=
             rank_.limit;
}

double RankSequences::Start(const Point& from, int kind, double earliest,
                            double latest) const {
  double start = std::max(from.free, earliest);
  if (kind != kW) start = std::max(start, from.next[kind]);
  return start + rank_.times[kind] > latest + slack_ ? kInfinity : start;
}

RankSequences::Point RankSequences::After(const Point& from, int kind,
                                          double start) const {
  Point after{.free = start + rank_.times[kind], .next = from.next};
  if (kind != kW) after.next[kind] = after.free + rank_.gaps[kind];
  for (double& next : after.next) next = std::max(next, after.free);
  return after;
}

void RankSequences::Insert(const Point& point, Front* front) {
  const auto covers = [](const Point& a, const Point& b) {
    return a.free <= b.free && a.next[kF] <= b.next[kF] &&
           a.next[kI] <= b.next[kI];
  };
  for (const Point& other : *front) {
    if (covers(other, point)) return;
  }
  front->erase(
      std::remove_if(front->begin(), front->end(),
                     [&](const Point& other) { return covers(point, other); }),
      front->end());
  front->push_back(point);
  if (front->size() <= kMostPoints) return;
  // The two that are closest to each other become one.
  std::pair<size_t, size_t> closest;
  double least = kInfinity;
  for (size_t i = 0; i < front->size(); ++i) {
    for (size_t j = i + 1; j < front->size(); ++j) {
      const Point& a = (*front)[i];
      const Point& b = (*front)[j];
      const double apart = std::abs(a.free - b.free) +
                           std::abs(a.next[kF] - b.next[kF]) +
                           std::abs(a.next[kI] - b.next[kI]);
      if (apart < least) {
        least = apart;
        closest = {i, j};
      }
    }
  }
  Point& kept = (*front)[closest.first];
  const Point& gone = (*front)[closest.second];
  kept.free = std::min(kept.free, gone.free);
  for (const int kind : {kF, kI}) {
    kept.next[kind] = std::min(kept.next[kind], gone.next[kind]);
  }
  front->erase(front->begin() + static_cast<std::ptrdiff_t>(closest.second));
}

bool RankSequences::Narrow(const RankCommands& rank, double slack,
                           RankWindows* windows) {
  rank_ = rank;
  slack_ = slack;
  FindBegun(*windows);
  if (begun_.back().empty()) return false;
  RankWindows possible;
  for (int kind = 0; kind < kKinds; ++kind) {
    possible.earliest[kind].assign(micro_batches_, kInfinity);
    possible.latest[kind].assign(micro_batches_, -kInfinity);
  }
  FindLeft(*windows, &possible);
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int m = 0; m < micro_batches_; ++m) {
      if (possible.earliest[kind][m] == kInfinity) return false;
    }
  }
  *windows = std::move(possible);
  return true;
}

void RankSequences::FindBegun(const RankWindows& windows) {
  for (Front& front : begun_) front.clear();
  reached_.clear();
  begun_[0].push_back({});
  for (int f = 0; f <= micro_batches_; ++f) {
    for (int i = 0; i <= f; ++i) {
      for (int w = 0; w <= i; ++w) {
        const Counts at = {f, i, w};
        if (begun_[Index(at)].empty()) continue;
        reached_.push_back(at);
        for (int kind = 0; kind < kKinds; ++kind) {
          if (!MayFollow(at, kind)) continue;
          Counts next = at;
          const int m = next[kind]++;
          for (const Point& point : begun_[Index(at)]) {
            const double start = Start(point, kind, windows.earliest[kind][m],
                                       windows.latest[kind][m]);
            if (start == kInfinity) continue;
            Insert(After(point, kind, start), &begun_[Index(next)]);
          }
        }
      }
    }
  }
}

// The same from the end, and which of it meets what was begun.
void RankSequences::FindLeft(const RankWindows& windows,
                             RankWindows* possible) {
  for (Front& front : left_) front.clear();
  left_.back().push_back(
      {.free = -kInfinity, .next = {-kInfinity, -kInfinity}});
  for (auto at = reached_.rbegin(); at != reached_.rend(); ++at) {
    for (int kind = 0; kind < kKinds; ++kind) {
      if (!MayFollow(*at, kind)) continue;
      Counts next = *at;
      const int m = next[kind]++;
      const double earliest = windows.earliest[kind][m];
      const double latest = windows.latest[kind][m];
      double soonest = kInfinity;
      for (const Point& point : begun_[Index(*at)]) {
        soonest = std::min(soonest, Start(point, kind, earliest, latest));
      }
      if (soonest == kInfinity) continue;
      double last = -kInfinity;
      for (const Point& point : left_[Index(next)]) {
        const double start = Start(point, kind, -latest, -soonest);
        if (start == kInfinity) continue;
        last = std::max(last, -start);
        Insert(After(point, kind, start), &left_[Index(*at)]);
      }
      if (last == -kInfinity) continue;
      possible->earliest[kind][m] =
          std::min(possible->earliest[kind][m], soonest);
      possible->latest[kind][m] = std::max(possible->latest[kind][m], last);
    }
  }
}

}  // namespace penstock::coordinator::schedule
