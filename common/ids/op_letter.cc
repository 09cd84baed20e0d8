#include "common/ids/op_letter.h"

namespace penstock::common::ids {

absl::string_view OpLetter(int op) {
  constexpr absl::string_view kLetters = "FBIW";
  return op >= 1 && op <= static_cast<int>(kLetters.size())
             ? kLetters.substr(op - 1, 1)
             : "?";
}

}  // namespace penstock::common::ids
