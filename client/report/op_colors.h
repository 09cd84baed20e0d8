// The colours of commands: a hue for each operation, a shade for each
// micro-batch, so that one can be followed from rank to rank.
#ifndef PENSTOCK_CLIENT_REPORT_OP_COLORS_H_
#define PENSTOCK_CLIENT_REPORT_OP_COLORS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace penstock::client::report {

// Shades an operation has.
inline constexpr int kShades = 16;

struct OpColor {
  std::string fill;        // "#93c5fd"
  absl::string_view text;  // Of the number in the box: readable on `fill`.
};

// The shade of a micro-batch of `micro_batches`: the first is the lightest.
int ShadeOf(int micro_batch, int micro_batches);

// REQUIRES: 0 <= shade < kShades. Operations that are none of F, B, I, W are
// grey.
OpColor ColorOf(char op, int shade);

// The contrast ratio of WCAG 2 between two colours as "#rrggbb", 1 to 21.
double ContrastOf(absl::string_view a, absl::string_view b);

// "forward"
absl::string_view NameOfOp(char op);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_OP_COLORS_H_
