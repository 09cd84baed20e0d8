#include "tests/coordinator/schedule/rule_oracle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kFree = -1;
constexpr double kNever = std::numeric_limits<double>::infinity();

// What a slot or buffer holds: a micro-batch (tied messages: 0), or kFree.
using Slots = std::vector<int>;

struct Wire {
  Slots slots;    // The receiver's; unused where it lands in the stash.
  Slots buffers;  // The sender's.
  std::vector<int> sends;     // Micro-batch of each message, in order.
  std::vector<int> receives;  // The same as the receiver expects them.
  int written = 0;            // Messages whose step has ended,
  int granted = 0;            // with a credit,
  int begun = 0;              // on the wire,
  int arrived = 0;            // at the receiver.
  double wire_free = 0;
  std::vector<double> arrival;  // Of those begun.
};

struct RankState {
  int next = 0;
  bool running = false;
  double end = 0;
};

class Player {
 public:
  Player(const LoweredProgram& program, const Costs& costs)
      : program_(program), costs_(costs), ranks_(program.ranks()) {
    for (const Edge& edge : program.edges) {
      Wire& wire = wires_.emplace_back();
      if (!edge.lands_in_stash) wire.slots.assign(edge.capacity, kFree);
      wire.buffers.assign(edge.send_buffers, kFree);
    }
    for (const auto& steps : program.steps) {
      for (const LoweredStep& step : steps) {
        const int m = step.command.micro_batch;
        if (step.send_edge != kNone) wires_[step.send_edge].sends.push_back(m);
        if (step.receive_edge != kNone) {
          wires_[step.receive_edge].receives.push_back(m);
        }
      }
    }
    for (const StageSlots& stage : program.stages) {
      stash_.push_back(Slots(stage.slots, kFree));
      local_.push_back(Slots(stage.local_gradient_slots, kFree));
    }
  }

  OracleResult Play() {
    OracleResult result;
    while (broken_.empty()) {
      while (broken_.empty() && Settle()) {
      }
      const double next = NextTime();
      if (next == kNever) break;
      now_ = next;
    }
    result.broken = broken_;
    result.makespan = now_;
    result.finished = true;
    for (int r = 0; r < program_.ranks(); ++r) {
      result.finished &=
          ranks_[r].next == static_cast<int>(program_.steps[r].size());
    }
    if (result.finished && broken_.empty()) {
      for (const Slots& slots : stash_) ExpectAllFree(slots);
      for (const Slots& slots : local_) ExpectAllFree(slots);
      for (const Wire& wire : wires_) ExpectAllFree(wire.slots);
      for (const Wire& wire : wires_) ExpectAllFree(wire.buffers);
      result.broken = broken_;
    }
    return result;
  }

 private:
  void ExpectAllFree(const Slots& slots) {
    for (const int slot : slots) {
      if (slot != kFree) broken_ = "a slot is still used at the end";
    }
  }

  void Fill(Slots* slots, int slot, int m, absl::string_view what) {
    if ((*slots)[slot] != kFree) broken_ = absl::StrCat(what, " used twice");
    (*slots)[slot] = m;
  }
  void Empty(Slots* slots, int slot, int m, absl::string_view what) {
    if ((*slots)[slot] != m) {
      broken_ = absl::StrCat(what, " holds ", (*slots)[slot], ", not ", m);
    }
    (*slots)[slot] = kFree;
  }

  // One thing that can happen at now_, if there is any.
  bool Settle() {
    for (size_t e = 0; e < wires_.size(); ++e) {
      if (SettleWire(program_.edges[e], &wires_[e])) return true;
    }
    for (int r = 0; r < program_.ranks(); ++r) {
      if (ranks_[r].running ? EndStep(r) : StartStep(r)) return true;
    }
    return false;
  }

  bool SettleWire(const Edge& edge, Wire* wire) {
    if (wire->arrived < wire->begun && wire->arrival[wire->arrived] <= now_) {
      const int j = wire->arrived++;
      Empty(&wire->buffers, j % edge.send_buffers, wire->sends[j],
            "send buffer");
      if (wire->sends[j] != wire->receives[j]) broken_ = "wrong message";
      return true;
    }
    if (wire->granted < edge.messages) {
      const int j = wire->granted;
      const int m = wire->receives[j];
      Slots& slots =
          edge.lands_in_stash ? stash_[edge.target_stage] : wire->slots;
      int& slot = slots[(edge.lands_in_stash ? m : j) % slots.size()];
      if (slot == kFree) {
        slot = m;
        ++wire->granted;
        return true;
      }
    }
    if (wire->begun < std::min(wire->granted, wire->written) &&
        wire->wire_free <= now_) {
      ++wire->begun;
      const bool activation = edge.kind == EdgeKind::kActivation;
      const bool gradient = edge.kind == EdgeKind::kGradient;
      const int64_t bytes = activation ? costs_.bytes.activation
                            : gradient ? costs_.bytes.gradient
                                       : costs_.bytes.tied;
      wire->wire_free = now_ + bytes * costs_.seconds_per_byte;
      wire->arrival.push_back(wire->wire_free + costs_.latency);
      return true;
    }
    return false;
  }

  bool Local(int a, int b) const {
    return a >= 0 && b < program_.placement.stages() &&
           program_.placement.same_rank(a, b);
  }

  bool StartStep(int rank) {
    RankState& state = ranks_[rank];
    if (state.next == static_cast<int>(program_.steps[rank].size())) {
      return false;
    }
    const LoweredStep& step = program_.steps[rank][state.next];
    const int m = step.command.micro_batch;
    const int s = step.command.stage;
    if (step.receive_edge != kNone &&
        wires_[step.receive_edge].arrived <= step.receive_message) {
      return false;
    }
    if (step.send_edge != kNone) {
      Slots& buffers = wires_[step.send_edge].buffers;
      if (buffers[step.send_slot] != kFree) return false;
      buffers[step.send_slot] = m;
    }
    double time = step.kind == StepKind::kTiedReduce ? costs_.tied_add : 0;
    if (step.kind == StepKind::kCompute) {
      time = costs_.stages[s].of(step.command.op);
      if (step.command.op == Op::kForward) {
        // Elsewhere it was filled by the message or the stage before.
        const bool beside = step.receive_edge != kNone &&
                            !program_.edges[step.receive_edge].lands_in_stash;
        if (s == 0 || beside) {
          Fill(&stash_[s], step.stash_slot, m, "stash slot");
        }
        if (stash_[s][step.stash_slot] != m) broken_ = "input is not there";
        if (Local(s, s + 1)) {
          Fill(&stash_[s + 1], step.send_slot, m, "next stage's slot");
        }
      } else if (ProducesInputGradient(step.command.op) && Local(s - 1, s)) {
        Fill(&local_[s - 1], step.send_slot, m, "local gradient slot");
      }
    }
    state.running = true;
    state.end = now_ + time;
    return true;
  }

  bool EndStep(int rank) {
    RankState& state = ranks_[rank];
    if (state.end > now_) return false;
    const LoweredStep& step = program_.steps[rank][state.next];
    const int m = step.command.micro_batch;
    const int s = step.command.stage;
    if (step.send_edge != kNone) ++wires_[step.send_edge].written;
    if (step.receive_edge != kNone &&
        !program_.edges[step.receive_edge].lands_in_stash) {
      Empty(&wires_[step.receive_edge].slots, step.receive_slot, m, "slot");
    }
    if (step.kind == StepKind::kCompute) {
      if (ProducesInputGradient(step.command.op) && Local(s, s + 1)) {
        Empty(&local_[s], step.receive_slot, m, "local gradient slot");
      }
      if (step.releases_stash()) {
        Empty(&stash_[s], step.stash_slot, m, "stash slot");
      }
    }
    state.running = false;
    ++state.next;
    return true;
  }

  double NextTime() const {
    double next = kNever;
    for (const RankState& state : ranks_) {
      if (state.running) next = std::min(next, state.end);
    }
    for (const Wire& wire : wires_) {
      if (wire.arrived < wire.begun) {
        next = std::min(next, wire.arrival[wire.arrived]);
      }
      if (wire.begun < std::min(wire.granted, wire.written)) {
        next = std::min(next, wire.wire_free);
      }
    }
    return next;
  }

  const LoweredProgram& program_;
  const Costs& costs_;
  std::vector<RankState> ranks_;
  std::vector<Wire> wires_;
  std::vector<Slots> stash_;
  std::vector<Slots> local_;
  double now_ = 0;
  std::string broken_;
};

}  // namespace

OracleResult PlayOut(const LoweredProgram& program, const Costs& costs) {
  return Player(program, costs).Play();
}

}  // namespace penstock::coordinator::schedule
