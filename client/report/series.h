// A curve over steps, thinned to what a picture can show.
#ifndef PENSTOCK_CLIENT_REPORT_SERIES_H_
#define PENSTOCK_CLIENT_REPORT_SERIES_H_

#include <string>
#include <vector>

namespace penstock::client::report {

struct Point {
  double x = 0;
  double y = 0;  // Not finite: the curve is broken here.
};

// Points of neighbouring steps put together.
struct Bucket {
  double x = 0;     // Of the middle one.
  double mean = 0;  // Of the finite values; not finite where there is none.
  double low = 0;
  double high = 0;
  int count = 0;  // Finite values.
};

// At most `most` buckets of equally many points each, in the order given, so
// nothing is lost but the order inside a bucket: low and high keep every spike.
// REQUIRES: most > 0.
std::vector<Bucket> Thin(const std::vector<Point>& points, int most);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_SERIES_H_
