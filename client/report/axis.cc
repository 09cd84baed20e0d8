#include "client/report/axis.h"

#include <algorithm>
#include <cmath>

namespace penstock::client::report {

std::vector<double> LinearTicks(double low, double high, int wanted) {
  std::vector<double> ticks;
  if (!(low < high) || !std::isfinite(high - low) || wanted < 1) return ticks;
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1   ? 1
                               : lead <= 2 ? 2
                               : lead <= 5 ? 5
                                           : 10);
  // By index, so that rounding does not add up.
  const double first = std::ceil(low / step - 1e-9);
  const double last = std::floor(high / step + 1e-9);
  if (!(last - first < 100)) return ticks;
  for (int i = 0; i <= static_cast<int>(last - first); ++i) {
    const double tick = (first + i) * step;
    // Two are the same where the step is below the resolution of doubles.
    if (!ticks.empty() && tick <= ticks.back()) continue;
    ticks.push_back(tick == 0 ? 0 : tick);
  }
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  std::vector<double> ticks;
  if (!(low > 0) || !(low < high) || !std::isfinite(high)) return ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const int decades = last - first;
  const int stride = std::max(1, decades / 6);
  for (int e = first; e <= last; e += stride) {
    for (const double lead : {1.0, 2.0, 5.0}) {
      if (lead != 1 && decades > 2) continue;
      const double tick = lead * std::pow(10, e);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) {
        ticks.push_back(tick);
      }
    }
  }
  return ticks;
}

}  // namespace penstock::client::report
