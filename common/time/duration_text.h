// A measured duration as messages show it.
#ifndef PENSTOCK_COMMON_TIME_DURATION_TEXT_H_
#define PENSTOCK_COMMON_TIME_DURATION_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace penstock::common::time {

// As absl::FormatDuration, but no more exact than anybody needs: "1m" for
// 60.000113 s, "4.2s", "35ms", "12us". Cut, not rounded: what has not lasted a
// minute is not said to have. A setting (a lease) is shown as it was given, by
// absl::FormatDuration.
std::string DurationText(absl::Duration measured);

}  // namespace penstock::common::time

#endif  // PENSTOCK_COMMON_TIME_DURATION_TEXT_H_
