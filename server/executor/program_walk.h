// How far a rank has come at some command of a program: what program.cc keeps
// while it walks through the commands once.
#ifndef PENSTOCK_SERVER_EXECUTOR_PROGRAM_WALK_H_
#define PENSTOCK_SERVER_EXECUTOR_PROGRAM_WALK_H_

#include <vector>

#include "server/executor/stage_assignment.h"

namespace penstock::server::executor {

// How far one micro-batch of a chunk has come.
struct Progress {
  bool forward = false;
  bool backward = false;  // B or I.
  bool weight = false;    // B or W.
  bool split = false;     // Its backward is I and W.
  int held = kNone;
};

// A chunk while the program is walked through.
struct ChunkWalk {
  std::vector<Progress> micro_batches;
  std::vector<int> occupant;       // Of each stash slot, or kNone.
  std::vector<int> released_by;    // Commands enqueued when it became free.
  std::vector<int> gradient_from;  // Of each local gradient slot: micro-batch.
  std::vector<int> held;           // Of each held place: micro-batch.
  int handed_over = 0;             // Local gradients so far.
  int forwards = 0;
  int weights = 0;
  int last_weight = kNone;  // Micro-batch of the newest B or W.
};

// An edge: messages so far, and for a gradient edge when each was taken.
struct EdgeWalk {
  int messages = 0;
  int newest_post = 0;        // `after` of the newest one.
  std::vector<int> taken_by;  // By message: commands complete by then.
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_PROGRAM_WALK_H_
