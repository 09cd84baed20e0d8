#include "common/time/duration_text.h"

namespace penstock::common::time {
namespace {

// The last digit of a duration that is this long.
absl::Duration UnitOf(absl::Duration size) {
  if (size >= absl::Minutes(1)) return absl::Seconds(1);
  if (size >= absl::Seconds(1)) return absl::Milliseconds(100);
  if (size >= absl::Milliseconds(1)) return absl::Milliseconds(1);
  return absl::Microseconds(1);
}

}  // namespace

std::string DurationText(absl::Duration measured) {
  return absl::FormatDuration(
      absl::Trunc(measured, UnitOf(absl::AbsDuration(measured))));
}

}  // namespace penstock::common::time
