// Orders that no generator makes, for tests of the executor.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_LOWER_ORDER_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_LOWER_ORDER_H_

#include "absl/strings/string_view.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::testing {

// An order's text form, a row a rank ("0F0,0I0,0W0\n"), lowered; CHECKs that it
// works. The embedding is tied.
struct OrderShape {
  int ranks = 1;
  int micro_batches = 1;
};
coordinator::schedule::LoweredProgram LowerOrder(absl::string_view rows,
                                                 const OrderShape& shape);

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_LOWER_ORDER_H_
