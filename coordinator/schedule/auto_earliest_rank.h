// Which rank is to be asked next, of a step that is played out in time order.
// Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_

#include <vector>

#include "coordinator/schedule/auto_problem.h"

namespace penstock::coordinator::schedule {

// The least of one time a rank, with the lowest rank that has it. All begin
// with 0. Thread-compatible.
class EarliestRank {
 public:
  explicit EarliestRank(int ranks) {
    while (width_ < ranks) width_ *= 2;
    tree_.resize(2 * width_);
    for (int r = 0; r < width_; ++r) {
      tree_[width_ + r] = {.time = r < ranks ? 0 : kNever, .rank = r};
    }
    for (int i = width_ - 1; i > 0; --i) tree_[i] = Earlier(i);
  }
  void Set(int rank, double time) {
    int i = width_ + rank;
    tree_[i].time = time;
    for (i /= 2; i > 0; i /= 2) {
      const Entry earlier = Earlier(i);
      if (earlier.time == tree_[i].time && earlier.rank == tree_[i].rank) {
        return;
      }
      tree_[i] = earlier;
    }
  }
  double Of(int rank) const { return tree_[width_ + rank].time; }
  double Least() const { return tree_[1].time; }
  int Find() const { return tree_[1].rank; }

 private:
  struct Entry {
    double time = 0;
    int rank = 0;
  };
  // Of the two below.
  Entry Earlier(int i) const {
    const Entry& low = tree_[2 * i];
    const Entry& high = tree_[2 * i + 1];
    return high.time < low.time ? high : low;
  }

  int width_ = 1;
  std::vector<Entry> tree_;
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_
