#include "client/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::client::report {

std::vector<Bucket> Thin(const std::vector<Point>& points, int most) {
  std::vector<Bucket> buckets;
  const size_t size = (points.size() + most - 1) / static_cast<size_t>(most);
  for (size_t first = 0; first < points.size(); first += size) {
    const size_t end = std::min(points.size(), first + size);
    Bucket bucket{.x = points[first + (end - first) / 2].x};
    double sum = 0;
    for (size_t i = first; i < end; ++i) {
      const double y = points[i].y;
      if (!std::isfinite(y)) continue;
      bucket.low = bucket.count == 0 ? y : std::min(bucket.low, y);
      bucket.high = bucket.count == 0 ? y : std::max(bucket.high, y);
      ++bucket.count;
      sum += y;
    }
    bucket.mean = bucket.count > 0 ? sum / bucket.count
                                   : std::numeric_limits<double>::quiet_NaN();
    buckets.push_back(bucket);
  }
  return buckets;
}

}  // namespace penstock::client::report
