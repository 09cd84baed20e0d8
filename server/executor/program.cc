#include "server/executor/program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/executor/program_walk.h"

namespace penstock::server::executor {
namespace {

class Walk {
 public:
  Walk(const StageAssignment& assignment, const v1::StepCommands& from)
      : assignment_(assignment), from_(from) {}

  absl::StatusOr<Program> Run();

 private:
  template <typename... Parts>
  absl::Status Wrong(const Parts&... parts) const {
    std::string where = absl::StrCat("step ", from_.step());
    if (position_ < from_.commands_size()) {
      const v1::Command& command = from_.commands(position_);
      absl::StrAppend(
          &where, ", command ", position_, ", ",
          CommandName(command.op(), command.stage(), command.micro_batch()));
    }
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", parts...));
  }

  absl::Status CountMicroBatches();
  absl::Status Add(const v1::Command& from);
  absl::Status TakeTurn(const ProgramCommand& command);
  absl::Status TakeSlot(ProgramCommand& command);
  absl::Status AddForward(ProgramCommand& command);
  absl::Status AddBackward(ProgramCommand& command, const v1::Command& from);
  absl::Status TakeGradient(ProgramCommand& command, const v1::Command& from);
  absl::Status HandOverGradient(ProgramCommand& command);
  absl::Status AddWeight(ProgramCommand& command);
  absl::Status CheckFlags(const ProgramCommand& command,
                          const v1::Command& from) const;
  absl::Status CheckComplete();
  void Release(ProgramCommand& command);
  Boundary Receive(int edge, const ProgramCommand& command, int slot,
                   int free_after);
  Boundary Send(int edge);

  const StageAssignment& assignment_;
  const v1::StepCommands& from_;
  int position_ = 0;
  Program program_;
  std::vector<ChunkWalk> chunks_;
  std::vector<EdgeWalk> edges_;
};

absl::StatusOr<Program> Walk::Run() {
  position_ = from_.commands_size();  // Errors of the whole program.
  program_.kind = from_.kind();
  program_.step = from_.step();
  program_.full_timings = from_.full_timings();
  if (from_.kind() != v1::StepCommands::KIND_TRAIN &&
      from_.kind() != v1::StepCommands::KIND_EVALUATE) {
    return Wrong("kind ", from_.kind(), " is not known");
  }
  if (from_.step() < (program_.trains() ? 1 : 0)) {
    return Wrong("steps are numbered from 1");
  }
  RETURN_IF_ERROR(CountMicroBatches());
  for (const AssignedChunk& chunk : assignment_.chunks) {
    ChunkWalk walk;
    walk.micro_batches.resize(program_.micro_batches);
    walk.occupant.resize(chunk.slots, kNone);
    walk.released_by.resize(chunk.slots, 0);
    walk.gradient_from.resize(chunk.local_gradient_slots, kNone);
    walk.held.resize(chunk.held_slots, kNone);
    chunks_.push_back(std::move(walk));
  }
  edges_.resize(assignment_.edges.size());
  for (position_ = 0; position_ < from_.commands_size(); ++position_) {
    RETURN_IF_ERROR(Add(from_.commands(position_)));
  }
  RETURN_IF_ERROR(CheckComplete());
  // Each receive was added with its consumer: a stable sort keeps the order of
  // consumers, and the order of messages within an edge.
  std::stable_sort(
      program_.posts.begin(), program_.posts.end(),
      [](const Post& a, const Post& b) { return a.after < b.after; });
  return std::move(program_);
}

absl::Status Walk::CountMicroBatches() {
  if (from_.commands().empty()) return Wrong("has no commands");
  program_.micro_batches = assignment_.micro_batches;
  if (program_.trains()) return absl::OkStatus();
  // As many as each chunk has commands; CheckComplete finds uneven ones.
  program_.micro_batches = from_.commands_size() / assignment_.chunks.size();
  if (program_.micro_batches == 0) {
    return Wrong("has fewer commands than the rank has stages");
  }
  return absl::OkStatus();
}

absl::Status Walk::Add(const v1::Command& from) {
  ProgramCommand command;
  command.op = from.op();
  command.stage = from.stage();
  command.micro_batch = from.micro_batch();
  command.slot = from.slot();
  command.chunk = kNone;
  for (size_t i = 0; i < assignment_.chunks.size(); ++i) {
    if (assignment_.chunks[i].stage == from.stage()) command.chunk = i;
  }
  if (command.chunk == kNone) {
    return Wrong("stage ", from.stage(), " is not on rank ", assignment_.rank);
  }
  if (from.micro_batch() < 0 || from.micro_batch() >= program_.micro_batches) {
    return Wrong("micro-batch ", from.micro_batch(), " of ",
                 program_.micro_batches);
  }
  RETURN_IF_ERROR(TakeTurn(command));
  RETURN_IF_ERROR(TakeSlot(command));
  switch (command.op) {
    case v1::OP_FORWARD:
      RETURN_IF_ERROR(AddForward(command));
      break;
    case v1::OP_BACKWARD:
    case v1::OP_BACKWARD_INPUT:
      RETURN_IF_ERROR(AddBackward(command, from));
      break;
    default:
      RETURN_IF_ERROR(AddWeight(command));
  }
  RETURN_IF_ERROR(CheckFlags(command, from));
  if (command.releases) Release(command);
  program_.commands.push_back(command);
  return absl::OkStatus();
}

// Checks what must have happened before the command, within this rank, and
// notes that the command has.
absl::Status Walk::TakeTurn(const ProgramCommand& command) {
  ChunkWalk& chunk = chunks_[command.chunk];
  Progress& done = chunk.micro_batches[command.micro_batch];
  const auto weight_order = [this, &command, &chunk]() -> absl::Status {
    if (command.micro_batch < chunk.last_weight) {
      return Wrong(
          "weight gradients are added in ascending order of "
          "micro-batches, but ",
          chunk.last_weight, " came first");
    }
    return absl::OkStatus();
  };
  switch (command.op) {
    case v1::OP_FORWARD:
      if (done.forward) return Wrong("is there twice");
      done.forward = true;
      if (!program_.trains() && command.micro_batch != chunk.forwards) {
        return Wrong("evaluation takes micro-batches in order, next is ",
                     chunk.forwards);
      }
      ++chunk.forwards;
      return absl::OkStatus();
    case v1::OP_BACKWARD:
    case v1::OP_BACKWARD_INPUT:
      if (!program_.trains()) return Wrong("evaluation has only forwards");
      if (done.backward) return Wrong("its backward is there twice");
      if (!done.forward) return Wrong("comes before its forward");
      done.backward = true;
      done.split = command.op == v1::OP_BACKWARD_INPUT;
      if (done.split) return absl::OkStatus();
      break;
    case v1::OP_BACKWARD_WEIGHT:
      if (!program_.trains()) return Wrong("evaluation has only forwards");
      if (done.weight) return Wrong("its weight gradient is there twice");
      if (!done.split) return Wrong("comes before its input gradient");
      break;
    default:
      return Wrong("operation ", command.op, " is not known");
  }
  RETURN_IF_ERROR(weight_order());
  done.weight = true;
  chunk.last_weight = command.micro_batch;
  return absl::OkStatus();
}

absl::Status Walk::TakeSlot(ProgramCommand& command) {
  const AssignedChunk& assigned = assignment_.chunks[command.chunk];
  ChunkWalk& chunk = chunks_[command.chunk];
  if (command.slot != command.micro_batch % assigned.slots) {
    return Wrong("slot ", command.slot, ", but micro-batch ",
                 command.micro_batch, " of ", assigned.slots,
                 " slots belongs in ", command.micro_batch % assigned.slots);
  }
  if (command.op != v1::OP_FORWARD) return absl::OkStatus();
  int& occupant = chunk.occupant[command.slot];
  // A local input was written into the slot by the chunk before.
  const bool handed_over = assigned.previous_chunk != kNone;
  if (handed_over && occupant != command.micro_batch) {
    return Wrong("comes before the forward of stage ", assigned.stage - 1,
                 " that makes its input");
  }
  if (!handed_over && occupant != kNone) {
    return Wrong("slot ", command.slot, " still holds micro-batch ", occupant);
  }
  occupant = command.micro_batch;
  return absl::OkStatus();
}

absl::Status Walk::AddForward(ProgramCommand& command) {
  const AssignedChunk& assigned = assignment_.chunks[command.chunk];
  const ChunkWalk& chunk = chunks_[command.chunk];
  if (assigned.activation_in != kNone) {
    command.input = Receive(assigned.activation_in, command, command.slot,
                            chunk.released_by[command.slot]);
  } else if (assigned.previous_chunk != kNone) {
    command.input = {.kind = Boundary::Kind::kLocal, .slot = command.slot};
  }
  if (assigned.activation_out != kNone) {
    command.output = Send(assigned.activation_out);
  } else if (assigned.next_chunk != kNone) {
    ChunkWalk& next = chunks_[assigned.next_chunk];
    const int slot =
        command.micro_batch % assignment_.chunks[assigned.next_chunk].slots;
    if (next.occupant[slot] != kNone) {
      return Wrong("its output belongs in slot ", slot, " of stage ",
                   assigned.stage + 1, ", which still holds micro-batch ",
                   next.occupant[slot]);
    }
    next.occupant[slot] = command.micro_batch;
    command.output = {.kind = Boundary::Kind::kLocal, .slot = slot};
  }
  command.releases = !program_.trains();
  return absl::OkStatus();
}

// Where the gradient of its output comes from.
absl::Status Walk::TakeGradient(ProgramCommand& command,
                                const v1::Command& from) {
  const AssignedChunk& assigned = assignment_.chunks[command.chunk];
  ChunkWalk& chunk = chunks_[command.chunk];
  const int enqueued = position_ + 1;
  if (assigned.gradient_in != kNone) {
    EdgeWalk& edge = edges_[assigned.gradient_in];
    const int capacity = assignment_.edges[assigned.gradient_in].end.capacity;
    const int slot = edge.messages % capacity;
    if (from.gradient_slot() != slot) {
      return Wrong("gradient slot ", from.gradient_slot(), ", but message ",
                   edge.messages, " of ", capacity, " slots lands in ", slot);
    }
    const int before = edge.messages - capacity;
    command.input = Receive(assigned.gradient_in, command, slot,
                            before < 0 ? 0 : edge.taken_by[before]);
    edge.taken_by.push_back(enqueued);
  } else if (assigned.next_chunk != kNone) {
    const int slot = from.gradient_slot();
    if (slot < 0 || slot >= assigned.local_gradient_slots ||
        chunk.gradient_from[slot] != command.micro_batch) {
      return Wrong("gradient slot ", slot,
                   " does not hold its output gradient");
    }
    chunk.gradient_from[slot] = kNone;
    command.input = {.kind = Boundary::Kind::kLocal, .slot = slot};
  }
  return absl::OkStatus();
}

// Where the gradient of its input goes.
absl::Status Walk::HandOverGradient(ProgramCommand& command) {
  const AssignedChunk& assigned = assignment_.chunks[command.chunk];
  if (assigned.gradient_out != kNone) {
    command.output = Send(assigned.gradient_out);
  } else if (assigned.previous_chunk != kNone) {
    ChunkWalk& previous = chunks_[assigned.previous_chunk];
    const int slots =
        assignment_.chunks[assigned.previous_chunk].local_gradient_slots;
    const int slot = previous.handed_over++ % slots;
    if (previous.gradient_from[slot] != kNone) {
      return Wrong("its input gradient belongs in gradient slot ", slot,
                   " of stage ", assigned.stage - 1,
                   ", which still holds that of micro-batch ",
                   previous.gradient_from[slot]);
    }
    previous.gradient_from[slot] = command.micro_batch;
    command.output = {.kind = Boundary::Kind::kLocal, .slot = slot};
  }
  return absl::OkStatus();
}

absl::Status Walk::AddBackward(ProgramCommand& command,
                               const v1::Command& from) {
  const AssignedChunk& assigned = assignment_.chunks[command.chunk];
  ChunkWalk& chunk = chunks_[command.chunk];
  RETURN_IF_ERROR(TakeGradient(command, from));
  RETURN_IF_ERROR(HandOverGradient(command));
  if (command.op == v1::OP_BACKWARD) {
    command.releases = true;
    ++chunk.weights;
    return absl::OkStatus();
  }
  if (assigned.held_slots == 0) {
    return Wrong("the assignment has no places for a split backward");
  }
  const auto place = std::find(chunk.held.begin(), chunk.held.end(), kNone);
  if (place == chunk.held.end()) {
    return Wrong("all ", assigned.held_slots,
                 " places for split backwards are taken");
  }
  *place = command.micro_batch;
  command.held = static_cast<int>(place - chunk.held.begin());
  chunk.micro_batches[command.micro_batch].held = command.held;
  return absl::OkStatus();
}

absl::Status Walk::AddWeight(ProgramCommand& command) {
  ChunkWalk& chunk = chunks_[command.chunk];
  command.held = chunk.micro_batches[command.micro_batch].held;
  chunk.held[command.held] = kNone;
  command.releases = true;
  ++chunk.weights;
  return absl::OkStatus();
}

absl::Status Walk::CheckFlags(const ProgramCommand& command,
                              const v1::Command& from) const {
  const bool receives = command.input.kind == Boundary::Kind::kEdge;
  const bool sends = command.output.kind == Boundary::Kind::kEdge;
  if (from.receives() != receives) {
    return Wrong(receives ? "its input comes over an edge, but `receives` is "
                            "not set"
                          : "has no edge to receive its input from");
  }
  if (from.sends() != sends) {
    return Wrong(sends ? "its output goes over an edge, but `sends` is not set"
                       : "has no edge to send its output over");
  }
  return absl::OkStatus();
}

void Walk::Release(ProgramCommand& command) {
  ChunkWalk& chunk = chunks_[command.chunk];
  chunk.occupant[command.slot] = kNone;
  chunk.released_by[command.slot] = position_ + 1;
  command.last_weight =
      program_.trains() && chunk.weights == program_.micro_batches;
}

Boundary Walk::Receive(int edge, const ProgramCommand& command, int slot,
                       int free_after) {
  EdgeWalk& walk = edges_[edge];
  // Credits are granted in the order of messages.
  walk.newest_post = std::max(walk.newest_post, free_after);
  const int message = walk.messages++;
  program_.posts.push_back({.edge = edge,
                            .message = message,
                            .micro_batch = command.micro_batch,
                            .slot = slot,
                            .after = walk.newest_post});
  return {.kind = Boundary::Kind::kEdge,
          .edge = edge,
          .message = message,
          .slot = slot};
}

Boundary Walk::Send(int edge) {
  return {.kind = Boundary::Kind::kEdge,
          .edge = edge,
          .message = edges_[edge].messages++};
}

absl::Status Walk::CheckComplete() {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const int stage = assignment_.chunks[i].stage;
    for (int m = 0; m < program_.micro_batches; ++m) {
      const Progress& done = chunks_[i].micro_batches[m];
      if (!done.forward) {
        return Wrong("ends without ", CommandName(v1::OP_FORWARD, stage, m));
      }
      if (program_.trains() && !done.weight) {
        return Wrong(
            "ends without ",
            CommandName(done.split ? v1::OP_BACKWARD_WEIGHT : v1::OP_BACKWARD,
                        stage, m));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> LowerCommands(const StageAssignment& assignment,
                                      const v1::StepCommands& commands) {
  return Walk(assignment, commands).Run();
}

}  // namespace penstock::server::executor
