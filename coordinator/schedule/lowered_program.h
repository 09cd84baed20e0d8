// What a rank really runs in one step: its commands with the messages, slots
// and buffers that they use. One form is simulated, verified and executed.
//
// THE RULE (shared by simulator, verifier and server/executor)
//
// A rank runs its steps in order, one at a time. A step s
//   starts    when the step before it is complete, and its message (if it has
//             a receive_edge) has arrived, and a send buffer of its send_edge
//             (if it has one) is free;
//   ends      its operation's time later;
//   completes when it ends. With send_buffers = 0 on its send_edge (blocking
//             sends, used only to study schedules) it completes when its
//             output has arrived at the receiver.
//
// Messages of an edge are numbered 0, 1, ... in the order in which the source
// rank sends them; the target rank takes them in the same order.
//
//   Send buffer: message j uses send buffer j mod send_buffers, from the start
//   of the step that writes it until it has arrived. So a step that sends
//   message j waits, before it starts, until message j - send_buffers has
//   arrived.
//
//   Credit: the receiver grants one credit for each slot in message order, as
//   soon as the slot is free, however far its commands have come. Message j's
//   transfer begins when its step has ended, its credit is granted and message
//   j - 1 has left the wire; it leaves the wire bytes * seconds_per_byte later
//   and has arrived latency after that.
//
//   Activation edges (lands_in_stash): message for micro-batch m lands in stash
//   slot m mod n of the target stage (n = StageSlots::slots). That slot is free
//   once its occupant before m, in the target's order of forwards, was released
//   by the completion of its B, or W where the backward is split.
//
//   Gradient and tied edges: message j lands in slot j mod capacity. It is free
//   once the step that took message j - capacity is complete.
//
//   capacity 0 (study only): no slot; the credit for message j is granted when
//   the step before the one that takes it is complete.
//
// Neighbouring stages on one rank hand over without an edge: F writes its
// output straight into the next stage's stash slot m mod n, which is free then
// by the order of the rank itself; B or I writes its input gradient into slot
// i mod local_gradient_slots of the stage before, i counting those hand-overs.
//
// Tied embedding, when stages 0 and S - 1 are on different ranks: the head's
// rank runs kTiedSend right after the last B or W of stage S - 1; the
// embedding's rank runs kTiedReduce right after the last B or W of stage 0:
// it takes the head's gradient, adds it to its own and sends the sum; the
// head's rank takes it in kTiedReceive, just before its replica reductions
// that need it and its barrier. A rank's last step is kBarrier.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_LOWERED_PROGRAM_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_LOWERED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids/edge.h"
#include "coordinator/schedule/instruction.h"
#include "coordinator/schedule/placement.h"

namespace penstock::coordinator::schedule {

// No edge, no slot.
inline constexpr int kNone = -1;

using common::ids::EdgeKind;

// A directed connection between two stages on different ranks. Its index in
// LoweredProgram::edges is its id.
struct Edge {
  EdgeKind kind = EdgeKind::kActivation;
  int source_stage = 0;
  int target_stage = 0;
  int source_rank = 0;
  int target_rank = 0;
  int capacity = 1;  // Receiver's slots; the target's stash slots if it lands
                     // there.
  int send_buffers = 1;
  bool lands_in_stash = false;
  int messages = 0;  // In one step.
};

// The static slots of one virtual stage.
struct StageSlots {
  int rank = 0;
  int peak_in_flight = 0;  // From the start of F to the end of B or W.
  int slots = 0;           // n: peak_in_flight + slots for inputs ahead.
  int ahead() const { return slots - peak_in_flight; }
  int held = 0;  // Most at one time between a split I and its W.
  // Hand-over slots for gradients from the next stage on the same rank.
  int local_gradient_slots = 0;
};

enum class StepKind : uint8_t {
  kCompute,        // `command`.
  kTiedSend,       // Head: sends its gradient of the tied weight.
  kTiedReduce,     // Embedding: receives, adds, sends the sum.
  kTiedReceive,    // Head: receives the sum.
  kReplicaReduce,  // All gradients of command.stage are final on this replica.
  kBarrier,        // StepReport, ReleaseStep, apply.
};

// One step of one rank. Fields that do not apply are kNone.
struct LoweredStep {
  StepKind kind = StepKind::kCompute;
  // kCompute; of the other kinds only `stage` has a meaning.
  Command command;
  // Slot of the stage's stash that holds this micro-batch: m mod n.
  int stash_slot = kNone;

  int receive_edge = kNone;     // Index into LoweredProgram::edges.
  int receive_message = kNone;  // Its number on that edge.
  // Where the input is: the stash slot (F), the edge's slot (B, I, tied), or
  // the local gradient slot where the next stage is on this rank.
  int receive_slot = kNone;

  int send_edge = kNone;
  int send_message = kNone;
  // With an edge: the send buffer. Without, where the neighbour is on this
  // rank: its stash slot (F) or its local gradient slot (B, I).
  int send_slot = kNone;

  // The completion of this step frees the stash slot (B, W).
  bool releases_stash() const {
    return kind == StepKind::kCompute && ProducesWeightGradient(command.op);
  }
};

// Produced by Lower(); a plain value.
struct LoweredProgram {
  std::string name;
  Placement placement;
  int micro_batches = 1;
  std::vector<std::vector<LoweredStep>> steps;  // (rank, position)
  std::vector<Edge> edges;
  std::vector<StageSlots> stages;  // One entry a virtual stage.

  int ranks() const { return placement.ranks; }
};

// How many commands of `rank` come before its step at `position`: the position
// of that step's place in the schedule that was lowered.
int CommandsBefore(const LoweredProgram& program, int rank, int position);

// "activation 2 -> 3".
std::string ToString(const Edge& edge);
// "2F3", "tied-send", "barrier", ...
std::string ToString(const LoweredStep& step);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_LOWERED_PROGRAM_H_
