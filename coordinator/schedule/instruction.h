// The words of a pipeline schedule: what one rank is told to do, once for each
// (operation, stage, micro-batch). Everything in coordinator/schedule is made
// of these; the coordinator sends them to the stage daemons unchanged.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_INSTRUCTION_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_INSTRUCTION_H_

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::coordinator::schedule {

// The enumerator's value is the letter of the text form.
enum class Op : uint8_t {
  kForward = 'F',
  kBackward = 'B',        // Full backward: input gradient, then weight.
  kBackwardInput = 'I',   // Gradient of the stage's input.
  kBackwardWeight = 'W',  // Gradient of the stage's weights.
};

// The operation written as `letter`, or nothing.
std::optional<Op> OpFromLetter(char letter);

// One command of one rank. Immutable by convention, copied freely.
struct Command {
  Op op = Op::kForward;
  int stage = 0;        // Virtual stage, 0 .. K*v - 1.
  int micro_batch = 0;  // 0 .. M - 1.

  friend bool operator==(const Command& a, const Command& b) {
    return a.op == b.op && a.stage == b.stage && a.micro_batch == b.micro_batch;
  }
  friend bool operator!=(const Command& a, const Command& b) {
    return !(a == b);
  }
};

// Whether the command produces the gradient of its stage's input (B or I),
// which is what travels to the stage before.
inline bool ProducesInputGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardInput;
}

// Whether the command adds to its stage's weight gradients (B or W). Its end
// is also where the activations of that micro-batch are no longer needed.
inline bool ProducesWeightGradient(Op op) {
  return op == Op::kBackward || op == Op::kBackwardWeight;
}

// As in the text form: "3F12".
std::string ToString(const Command& command);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_INSTRUCTION_H_
