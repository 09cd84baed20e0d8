#include "tests/server/executor/lower_order.h"

#include <utility>

#include "common/log/log.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/text.h"

namespace penstock::testing {

namespace schedule = coordinator::schedule;

schedule::LoweredProgram LowerOrder(absl::string_view rows,
                                    const OrderShape& shape) {
  const auto order = schedule::ParseCsv(
      rows, {.ranks = shape.ranks, .micro_batches = shape.micro_batches});
  CHECK_OK(order.status());
  auto lowered = schedule::Lower(*order, {.tied_embedding = true});
  CHECK_OK(lowered.status());
  return *std::move(lowered);
}

}  // namespace penstock::testing
