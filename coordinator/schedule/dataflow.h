// The waits of a lowered program as a graph, and its evaluation: when every
// step runs and every message arrives, or who waits for whom for ever. Internal
// to this folder; the rule is the one of lowered_program.h.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_DATAFLOW_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_DATAFLOW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/lowered_program.h"

namespace penstock::coordinator::schedule {

// Steps are numbered through: rank 0's, then rank 1's, ... Messages too: edge
// 0's, then edge 1's, ...
struct Message {
  int edge = 0;
  int producer = kNone;  // Step.
  int consumer = kNone;  // Step.
  int credit = kNone;    // Step whose completion frees its slot; kNone: free.
};

// Built once for a program, evaluated many times. Immutable but for the two
// methods that say otherwise; thread-compatible.
class Dataflow {
 public:
  // InvalidArgument: sends and receives that do not match one to one, in order
  // and in micro-batch.
  static absl::StatusOr<Dataflow> Build(const LoweredProgram& program);

  // Recomputes which step frees which slot after slot counts changed.
  void SetCredits(const LoweredProgram& program);
  // Every slot is free at any time: unlimited slots.
  void RemoveCredits();

  int ranks() const { return static_cast<int>(rank_begin_.size()) - 1; }
  int step_count() const { return rank_begin_.back(); }
  int rank_begin(int rank) const { return rank_begin_[rank]; }
  int rank_of(int step) const { return rank_of_[step]; }
  int position_of(int step) const { return step - rank_begin_[rank_of_[step]]; }
  // The message that a step takes or sends, or kNone.
  int message_in(int step) const { return message_in_[step]; }
  int message_out(int step) const { return message_out_[step]; }
  const std::vector<Message>& messages() const { return messages_; }
  int edge_begin(int edge) const { return edge_begin_[edge]; }
  int edge_count() const { return static_cast<int>(edge_begin_.size()) - 1; }
  int send_buffers(int edge) const { return send_buffers_[edge]; }
  // Messages whose slot the completion of `step` frees: [first, last) below.
  int freed_begin(int step) const { return freed_begin_[step]; }
  int freed(int i) const { return freed_[i]; }

 private:
  absl::Status Connect(const LoweredProgram& program);
  void IndexCredits();

  std::vector<int> rank_begin_;
  std::vector<int> rank_of_;
  std::vector<int> message_in_;
  std::vector<int> message_out_;
  std::vector<Message> messages_;
  std::vector<int> edge_begin_;
  std::vector<int> send_buffers_;
  std::vector<int> freed_begin_;
  std::vector<int> freed_;
};

// Durations in the numbering of a Dataflow.
struct Durations {
  std::vector<double> step;
  std::vector<double> wire;     // An edge: bytes * seconds_per_byte.
  std::vector<double> latency;  // An edge.
};
// REQUIRES: costs.stages has an entry for each stage of the program.
Durations DurationsOf(const LoweredProgram& program, const Costs& costs);

// What happened. Times of what did not happen are negative.
struct Evaluation {
  bool finished = false;
  double makespan = 0;           // The latest completion.
  std::vector<double> start;     // (step)
  std::vector<double> end;       // (step)
  std::vector<double> complete;  // (step)
  std::vector<double> begin;     // (message): its transfer's begin
  std::vector<double> arrival;   // (message)
  std::vector<int> next;         // (rank): first step not complete
};
Evaluation Evaluate(const Dataflow& dataflow, const Durations& durations);

// A cycle of an evaluation that did not finish.
struct Deadlock {
  int rank = 0;      // A rank on the cycle,
  int position = 0;  // and the step that it never completes.
  std::string text;  // "cycle:" and one clause a line.
};
Deadlock ExplainDeadlock(const LoweredProgram& program,
                         const Dataflow& dataflow,
                         const Evaluation& evaluation);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_DATAFLOW_H_
