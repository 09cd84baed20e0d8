// StepCommands -> Program: what the engine enqueues for one step, with the
// slots, buffers and messages that each command uses.
//
// The coordinator chose the order and proved it; a stage chooses nothing. It
// checks that the commands are what an assignment of its own allows and that
// the memory that they name is free when they need it, and refuses the whole
// program otherwise, before anything of it runs. The rule that it checks
// against is THE RULE of coordinator/schedule/lowered_program.h:
//
//   - micro-batch m of a chunk uses stash slot m mod slots, from its F until
//     its B or W (its F, when evaluating);
//   - what a split backward holds in addition from I to W lies in the lowest of
//     the chunk's held places that is free at its I;
//   - messages of an edge are numbered in the order of the commands; message j
//     of a gradient edge lands in slot j mod capacity, which is free once the
//     command that took message j - capacity is complete; a message of an
//     activation edge lands in the stash slot of its micro-batch, which is free
//     once the slot's occupant before was released;
//   - a receive is posted as soon as its slot is free, in message order,
//     however far the commands have come: `posts`.
#ifndef PENSTOCK_SERVER_EXECUTOR_PROGRAM_H_
#define PENSTOCK_SERVER_EXECUTOR_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/executor/stage_assignment.h"

namespace penstock::server::executor {

// Where a boundary tensor of a command comes from or goes to.
struct Boundary {
  enum class Kind {
    kNone,   // There is none: data, loss, or a weight gradient.
    kEdge,   // A message of `edge`.
    kLocal,  // A chunk of this rank: its stash slot (F), or a slot of the
             // chunk's local gradients (B, I).
  };
  Kind kind = Kind::kNone;
  int edge = kNone;     // Index into StageAssignment::edges.
  int message = kNone;  // Its number on that edge in this program, from 0.
  int slot = kNone;     // Stash slot or gradient slot; kNone: a send buffer.
};

struct ProgramCommand {
  v1::Op op = v1::OP_UNSPECIFIED;
  int chunk = 0;  // Index into StageAssignment::chunks.
  int stage = 0;
  int micro_batch = 0;
  int slot = 0;              // Of the chunk's stash.
  int held = kNone;          // I and W: the place for what stays between them.
  Boundary input;            // F: activation. B, I: gradient of the output.
  Boundary output;           // F: activation. B, I: gradient of the input.
  bool releases = false;     // Its end frees the stash slot.
  bool last_weight = false;  // The last B or W of its chunk in the step.
};

// A receive to post once `after` commands are enqueued.
struct Post {
  int edge = kNone;
  int message = 0;
  int micro_batch = 0;
  int slot = 0;
  int after = 0;  // 0: at the program's start.
};

// A plain value.
struct Program {
  v1::StepCommands::Kind kind = v1::StepCommands::KIND_UNSPECIFIED;
  int64_t step = 0;
  int micro_batches = 0;  // TRAIN: M. EVALUATE: how many are evaluated.
  bool full_timings = false;
  std::vector<ProgramCommand> commands;
  std::vector<Post> posts;  // Ascending by `after`, then by their consumer.

  bool trains() const { return kind == v1::StepCommands::KIND_TRAIN; }
};

// InvalidArgument names step, position and command ("step 3, command 7, 2F5:
// ...") and the rule that is broken.
absl::StatusOr<Program> LowerCommands(const StageAssignment& assignment,
                                      const v1::StepCommands& commands);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_PROGRAM_H_
