// What the operations of a pipeline are called wherever people read of them:
// schedules, messages, traces and pictures.
#ifndef PENSTOCK_COMMON_IDS_OP_LETTER_H_
#define PENSTOCK_COMMON_IDS_OP_LETTER_H_

#include "absl/strings/string_view.h"

namespace penstock::common::ids {

// "F", "B", "I" or "W" for the numbers of the wire (penstock.v1.Op, which
// converts to int by itself); "?" for a number that is none of them.
absl::string_view OpLetter(int op);

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_OP_LETTER_H_
