#include "coordinator/schedule/slot_count.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace penstock::coordinator::schedule {
namespace {

// Uses and slots that one search may look at, for each use and at least.
constexpr int64_t kLooksAUse = 64;
constexpr int64_t kLeastLooks = int64_t{1} << 16;

// The largest difference of the numbers of two uses at one time.
int LargestDifference(absl::Span<const Use> uses) {
  // (number, to) of those before; on top one that is still there.
  using Held = std::pair<int, int>;
  std::priority_queue<Held> highest;
  std::priority_queue<Held, std::vector<Held>, std::greater<Held>> lowest;
  int difference = 0;
  for (const Use& use : uses) {
    while (!highest.empty() && highest.top().second < use.from) highest.pop();
    while (!lowest.empty() && lowest.top().second < use.from) lowest.pop();
    if (!highest.empty()) {
      difference = std::max({difference, highest.top().first - use.number,
                             use.number - lowest.top().first});
    }
    highest.emplace(use.number, use.to);
    lowest.emplace(use.number, use.to);
  }
  return difference;
}

// Whether n slots suffice. Takes what it looked at off `looks`.
bool Suffices(absl::Span<const Use> uses, int n, std::vector<int>* busy_until,
              int64_t* looks) {
  busy_until->assign(n, -1);
  *looks -= n;
  for (const Use& use : uses) {
    --*looks;
    int& until = (*busy_until)[use.number % n];
    if (until >= use.from) return false;
    until = use.to;
  }
  return true;
}

}  // namespace

int MostAtOnce(absl::Span<const Use> uses) {
  std::vector<int> ends;
  for (const Use& use : uses) ends.push_back(use.to);
  std::sort(ends.begin(), ends.end());
  int most = 0;
  for (size_t i = 0, ended = 0; i < uses.size(); ++i) {
    while (ended < ends.size() && ends[ended] < uses[i].from) ++ended;
    most = std::max(most, static_cast<int>(i + 1 - ended));
  }
  return most;
}

int LeastSlots(absl::Span<const Use> uses, SlotRange range) {
  // Two share a slot only if their numbers differ by a multiple of the count.
  const int suffices =
      std::min(range.most, std::max(range.least, LargestDifference(uses) + 1));
  int64_t looks =
      std::max(kLeastLooks, kLooksAUse * static_cast<int64_t>(uses.size()));
  std::vector<int> busy_until;
  // Of numbers that ascend and are freed in order these two are equal.
  for (int n = std::max(range.least, MostAtOnce(uses)); n < suffices; ++n) {
    if (looks <= 0) break;
    if (Suffices(uses, n, &busy_until, &looks)) return n;
  }
  return suffices;
}

}  // namespace penstock::coordinator::schedule
