// Where the marks of an axis stand.
#ifndef PENSTOCK_CLIENT_REPORT_AXIS_H_
#define PENSTOCK_CLIENT_REPORT_AXIS_H_

#include <vector>

namespace penstock::client::report {

// Multiples of 1, 2 or 5 times a power of ten within [low, high], about
// `wanted` of them. Empty unless low < high and both are finite.
std::vector<double> LinearTicks(double low, double high, int wanted);

// Powers of ten within [low, high], with 2 and 5 times them where that is few.
// Empty unless 0 < low < high.
std::vector<double> LogTicks(double low, double high);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_AXIS_H_
