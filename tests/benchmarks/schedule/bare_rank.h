// One rank of the bare program: a thread, its sockets and a timer. It keeps the
// rule of coordinator/schedule/lowered_program.h with nothing around it, and is
// what the daemons' `virtual` device is measured against.
//
//   - An op starts at the latest of the scheduled end of the op before it, the
//     moment at which its input was observed, and the moment at which its send
//     buffer was observed to be free; it ends its time later. Messages carry no
//     times.
//   - The thread sleeps in ppoll() until that end or until bytes have come,
//     whichever is first: a message is observed while an op runs, and wakes
//     nobody else. Its timer slack is 1 ns.
//   - Sends are rendezvous: a message goes out against a credit, which the
//     receiver gives when the slot is free, and its buffer is free when the
//     receiver says that it has come.
//   - A modelled transfer makes what is observed later by its latency.
#ifndef PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_BARE_RANK_H_
#define PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_BARE_RANK_H_

#include <cstdint>
#include <vector>

#include "tests/benchmarks/schedule/rank_plan.h"

namespace penstock::benchmarks::schedule {

// A step as a rank ran it; times of NowNs().
struct RankStep {
  int64_t released = 0;     // When it heard that it may begin.
  int64_t first_start = 0;  // Scheduled.
  int64_t last_end = 0;     // Scheduled.
  int64_t busy = 0;
  int64_t late = 0;  // Sum over ops of how late the thread woke at their ends.
};

// Nanoseconds of a modelled transfer, bytes of a message's payload.
struct RankOptions {
  int rank = 0;
  int control_port = 0;  // Of the parent.
  int steps = 1;
  bool barrier = true;
  int64_t transfer_ns = 0;
  int payload_bytes = 0;
};

// Runs the rank in the calling thread until all its steps are done: tells the
// parent its data port, hears those of all ranks, connects; then, for each
// step, waits for a byte of the parent (with the barrier; without, for the
// first only) and answers with a RankStep.
void RunRank(const RankPlan& plan, int ranks, const RankOptions& options);

}  // namespace penstock::benchmarks::schedule

#endif  // PENSTOCK_TESTS_BENCHMARKS_SCHEDULE_BARE_RANK_H_
