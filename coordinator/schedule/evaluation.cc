// Evaluate and ExplainDeadlock of dataflow.h.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/grid.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr double kNotYet = -1;

// All times follow from earlier ones by maxima and sums, so ranks can be run
// ahead in any order that respects the waits: no event queue is needed, and
// every step and message is visited once.
class Evaluator {
 public:
  Evaluator(const Dataflow& dataflow, const Durations& durations)
      : flow_(dataflow), durations_(durations) {
    const int steps = flow_.step_count();
    const int messages = static_cast<int>(flow_.messages().size());
    result_.start.assign(steps, kNotYet);
    result_.end.assign(steps, kNotYet);
    result_.complete.assign(steps, kNotYet);
    result_.begin.assign(messages, kNotYet);
    result_.arrival.assign(messages, kNotYet);
    for (int r = 0; r < flow_.ranks(); ++r) {
      result_.next.push_back(flow_.rank_begin(r));
      ready_.push_back(r);
    }
    queued_.assign(flow_.ranks(), true);
    wire_free_.assign(flow_.edge_count(), 0);
    for (int e = 0; e < flow_.edge_count(); ++e) {
      head_.push_back(flow_.edge_begin(e));
    }
  }

  Evaluation Run() && {
    while (!ready_.empty()) {
      const int rank = ready_.back();
      ready_.pop_back();
      queued_[rank] = false;
      while (result_.next[rank] < flow_.rank_begin(rank + 1) && Advance(rank)) {
      }
    }
    result_.finished = true;
    for (int r = 0; r < flow_.ranks(); ++r) {
      result_.finished &= result_.next[r] == flow_.rank_begin(r + 1);
    }
    return std::move(result_);
  }

 private:
  // Completes the next step of `rank`, or returns false where it must wait.
  bool Advance(int rank) {
    const int step = result_.next[rank];
    const int out = flow_.message_out(step);
    if (result_.end[step] == kNotYet && !Start(rank, step, out)) return false;
    double complete = result_.end[step];
    if (out != kNone) {
      const int edge = flow_.messages()[out].edge;
      Deliver(edge);
      if (flow_.send_buffers(edge) == 0) {
        if (result_.arrival[out] == kNotYet) return false;
        complete = std::max(complete, result_.arrival[out]);
      }
    }
    result_.complete[step] = complete;
    result_.makespan = std::max(result_.makespan, complete);
    ++result_.next[rank];
    for (int i = flow_.freed_begin(step); i < flow_.freed_begin(step + 1);
         ++i) {
      Deliver(flow_.messages()[flow_.freed(i)].edge);
    }
    return true;
  }

  bool Start(int rank, int step, int out) {
    double start =
        step == flow_.rank_begin(rank) ? 0 : result_.complete[step - 1];
    if (const int in = flow_.message_in(step); in != kNone) {
      if (result_.arrival[in] == kNotYet) return false;
      start = std::max(start, result_.arrival[in]);
    }
    if (const int holder = BufferHolder(out); holder != kNone) {
      if (result_.arrival[holder] == kNotYet) return false;
      start = std::max(start, result_.arrival[holder]);
    }
    result_.start[step] = start;
    result_.end[step] = start + durations_.step[step];
    return true;
  }

  // The earlier message whose send buffer `out` needs, or kNone.
  int BufferHolder(int out) const {
    if (out == kNone) return kNone;
    const int edge = flow_.messages()[out].edge;
    const int buffers = flow_.send_buffers(edge);
    if (buffers == 0 || out - buffers < flow_.edge_begin(edge)) return kNone;
    return out - buffers;
  }

  // Delivers all messages of the edge that can be.
  void Deliver(int edge) {
    for (; head_[edge] < flow_.edge_begin(edge + 1); ++head_[edge]) {
      const int i = head_[edge];
      const Message& message = flow_.messages()[i];
      if (result_.end[message.producer] == kNotYet) return;
      double begin = std::max(result_.end[message.producer], wire_free_[edge]);
      if (message.credit != kNone) {
        if (result_.complete[message.credit] == kNotYet) return;
        begin = std::max(begin, result_.complete[message.credit]);
      }
      wire_free_[edge] = begin + durations_.wire[edge];
      result_.begin[i] = begin;
      result_.arrival[i] = wire_free_[edge] + durations_.latency[edge];
      Wake(flow_.rank_of(message.producer));
      Wake(flow_.rank_of(message.consumer));
    }
  }

  void Wake(int rank) {
    if (queued_[rank]) return;
    queued_[rank] = true;
    ready_.push_back(rank);
  }

  const Dataflow& flow_;
  const Durations& durations_;
  Evaluation result_;
  std::vector<int> ready_;  // Ranks that may advance.
  std::vector<bool> queued_;
  std::vector<int> head_;  // (edge): first message not delivered.
  std::vector<double> wire_free_;
};

// Why a rank does not go on, and which rank it waits for.
struct Wait {
  std::string clause;
  int rank;
};

class Explainer {
 public:
  Explainer(const LoweredProgram& program, const Dataflow& dataflow,
            const Evaluation& evaluation)
      : program_(program), flow_(dataflow), result_(evaluation) {}

  Deadlock Explain() const {
    int rank = 0;
    while (result_.next[rank] == flow_.rank_begin(rank + 1)) ++rank;
    // A stuck rank waits for a stuck rank: as many moves as there are ranks
    // lead onto the cycle.
    for (int i = 0; i < flow_.ranks(); ++i) rank = WaitOf(rank).rank;
    Deadlock deadlock{.rank = rank,
                      .position = flow_.position_of(result_.next[rank]),
                      .text = ""};
    std::vector<std::string> clauses;
    do {
      Wait wait = WaitOf(rank);
      clauses.push_back(std::move(wait.clause));
      rank = wait.rank;
    } while (rank != deadlock.rank);
    deadlock.text = JoinCycle(clauses);
    return deadlock;
  }

 private:
  std::string At(int step) const {
    const int rank = flow_.rank_of(step);
    const int position = flow_.position_of(step);
    return absl::StrCat("rank ", rank, ", position ", position, " (",
                        ToString(program_.steps[rank][position]), ")");
  }

  Wait WaitOf(int rank) const {
    const int step = result_.next[rank];
    const int in = flow_.message_in(step);
    const int out = flow_.message_out(step);
    if (result_.end[step] >= 0) {
      return MessageWait(step, out, "cannot complete before its output");
    }
    if (in != kNone && result_.arrival[in] < 0) {
      return MessageWait(step, in, "waits for");
    }
    const int holder = out - flow_.send_buffers(flow_.messages()[out].edge);
    return MessageWait(step, holder, "has no free send buffer before");
  }

  Wait MessageWait(int step, int message, absl::string_view why) const {
    const int edge = flow_.messages()[message].edge;
    // An earlier message of the edge may be what is really stuck.
    int first = flow_.edge_begin(edge);
    while (result_.arrival[first] >= 0) ++first;
    const Message& stuck = flow_.messages()[first];
    std::string clause = absl::StrCat(At(step), " ", why, " message ",
                                      message - flow_.edge_begin(edge), " of ",
                                      ToString(program_.edges[edge]));
    if (first != message) {
      absl::StrAppend(&clause, " behind message ",
                      first - flow_.edge_begin(edge));
    }
    if (result_.end[stuck.producer] < 0) {
      absl::StrAppend(&clause, ", which ", At(stuck.producer), " sends");
      return {std::move(clause), flow_.rank_of(stuck.producer)};
    }
    absl::StrAppend(&clause, ", which has no slot before ", At(stuck.credit),
                    " is complete");
    return {std::move(clause), flow_.rank_of(stuck.credit)};
  }

  const LoweredProgram& program_;
  const Dataflow& flow_;
  const Evaluation& result_;
};

}  // namespace

Evaluation Evaluate(const Dataflow& dataflow, const Durations& durations) {
  return Evaluator(dataflow, durations).Run();
}

Deadlock ExplainDeadlock(const LoweredProgram& program,
                         const Dataflow& dataflow,
                         const Evaluation& evaluation) {
  return Explainer(program, dataflow, evaluation).Explain();
}

}  // namespace penstock::coordinator::schedule
