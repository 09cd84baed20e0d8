#include "coordinator/schedule/looped_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::schedule {

absl::StatusOr<LoopedOrder> LoopedOrder::Create(absl::string_view name,
                                                const Shape& shape) {
  RETURN_IF_ERROR(CheckShape(name, shape));
  const int ranks = shape.ranks;
  const int micro_batches = shape.micro_batches;
  const int groups = std::max(1, micro_batches / ranks);
  if (const int rest = micro_batches % groups; rest != 0) {
    // What is left over is less than the number of groups, so M - rest has as
    // many, and (M//K + 1) * K has one more, each with K.
    const int above =
        std::min(micro_batches - rest + groups, (groups + 1) * ranks);
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": M mod max(1, M//K) must be 0 for groups of equal size; M = ",
        micro_batches, " micro-batches on K = ", ranks, " ranks are ", groups,
        " groups and ", rest, " over; M = ", micro_batches - rest,
        " and M = ", above, " are possible"));
  }
  return LoopedOrder(shape, micro_batches / groups);
}

}  // namespace penstock::coordinator::schedule
