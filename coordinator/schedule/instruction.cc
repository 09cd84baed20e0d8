#include "coordinator/schedule/instruction.h"

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {

std::optional<Op> OpFromLetter(char letter) {
  switch (letter) {
    case 'F':
      return Op::kForward;
    case 'B':
      return Op::kBackward;
    case 'I':
      return Op::kBackwardInput;
    case 'W':
      return Op::kBackwardWeight;
    default:
      return std::nullopt;
  }
}

std::string ToString(const Command& command) {
  const char letter[2] = {static_cast<char>(command.op), '\0'};
  return absl::StrCat(command.stage, letter, command.micro_batch);
}

}  // namespace penstock::coordinator::schedule
