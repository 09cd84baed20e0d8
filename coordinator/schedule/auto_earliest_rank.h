// Which rank is to be asked next, of a step that is played out in time order.
// Internal to auto_*.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::coordinator::schedule {

// A time that does not come.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// The least of one time a rank, with the lowest rank that has it. All begin
// with 0. Thread-compatible.
class EarliestRank {
 public:
  explicit EarliestRank(int ranks) {
    while (width_ < ranks) width_ *= 2;
    tree_.assign(2 * width_, kNever);
    for (int r = 0; r < ranks; ++r) Set(r, 0);
  }
  void Set(int rank, double time) {
    int i = width_ + rank;
    tree_[i] = time;
    for (i /= 2; i > 0; i /= 2) {
      const double least = std::min(tree_[2 * i], tree_[2 * i + 1]);
      if (tree_[i] == least) return;
      tree_[i] = least;
    }
  }
  double Of(int rank) const { return tree_[width_ + rank]; }
  double Least() const { return tree_[1]; }
  int Find() const {
    int i = 1;
    while (i < width_) i = 2 * i + (tree_[2 * i] == tree_[1] ? 0 : 1);
    return i - width_;
  }

 private:
  int width_ = 1;
  std::vector<double> tree_;
};

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_AUTO_EARLIEST_RANK_H_
