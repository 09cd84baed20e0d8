// VerifyLowered of verifier.h.
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/dataflow.h"
#include "coordinator/schedule/memory_use.h"
#include "coordinator/schedule/order_check.h"
#include "coordinator/schedule/slot_numbers.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::schedule {
namespace {

class LoweredChecker {
 public:
  LoweredChecker(const LoweredProgram& program, const Memory& memory)
      : program_(program), memory_(memory) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckCommands());
    RETURN_IF_ERROR(CheckTables());
    MakeTables();
    const std::vector<RankParts> parts = PartsOfRanks(program_);
    ASSIGN_OR_RETURN(const Dataflow flow, Dataflow::Build(program_));
    RETURN_IF_ERROR(CheckEveryOutputIsSent());
    RETURN_IF_ERROR(CheckSlotNumbers());
    for (int r = 0; r < program_.ranks(); ++r) {
      RETURN_IF_ERROR(CheckOwnSlots(r));
      RETURN_IF_ERROR(CheckLastSteps(r));
      RETURN_IF_ERROR(CheckBytes(r, parts[r]));
    }
    return CheckDeadlock(flow);
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(program_.name, ": lowered program: ", what));
  }
  absl::Status WrongAt(int rank, int position, absl::string_view what) const {
    return Wrong(absl::StrCat("rank ", rank, ", position ", position, " (",
                              ToString(program_.steps[rank][position]),
                              "): ", what));
  }

  // The commands alone are a correct schedule.
  absl::Status CheckCommands() const {
    Schedule schedule{.name = program_.name,
                      .placement = program_.placement,
                      .micro_batches = program_.micro_batches,
                      .orders = {}};
    for (const auto& steps : program_.steps) {
      std::vector<Command>& order = schedule.orders.emplace_back();
      for (const LoweredStep& step : steps) {
        if (step.kind == StepKind::kCompute) order.push_back(step.command);
      }
    }
    return CheckOrder(schedule);
  }

  absl::Status CheckTables() const {
    const Placement& placement = program_.placement;
    const int stages = placement.stages();
    RETURN_IF_ERROR(CheckMemory(memory_, stages, program_.ranks()));
    if (static_cast<int>(program_.stages.size()) != stages) {
      return Wrong("its slot table does not fit its stages");
    }
    for (int s = 0; s < stages; ++s) {
      const StageSlots& slots = program_.stages[s];
      const bool local = s + 1 < stages && placement.same_rank(s, s + 1);
      if (slots.rank != placement.rank_of(s) || slots.slots < 1 ||
          slots.slots > program_.micro_batches || slots.held < 0 ||
          slots.held > program_.micro_batches ||
          slots.local_gradient_slots < (local ? 1 : 0) ||
          slots.local_gradient_slots > program_.micro_batches) {
        return Wrong(absl::StrCat("the slots of stage ", s, " are wrong"));
      }
    }
    for (const Edge& edge : program_.edges) {
      const auto in_range = [&](int s) { return s >= 0 && s < stages; };
      if (!in_range(edge.source_stage) || !in_range(edge.target_stage) ||
          edge.source_rank != placement.rank_of(edge.source_stage) ||
          edge.target_rank != placement.rank_of(edge.target_stage) ||
          edge.source_rank == edge.target_rank) {
        return Wrong(absl::StrCat(ToString(edge), " joins the wrong ranks"));
      }
      const auto is_count = [&](int count) {
        return count >= 0 && count <= program_.micro_batches;
      };
      if (!is_count(edge.capacity) || !is_count(edge.send_buffers) ||
          !is_count(edge.messages)) {
        return Wrong(absl::StrCat(ToString(edge), " has a count out of range"));
      }
      if (edge.lands_in_stash &&
          (edge.kind != EdgeKind::kActivation ||
           edge.capacity != program_.stages[edge.target_stage].slots)) {
        return Wrong(absl::StrCat(ToString(edge), " cannot land in the stash"));
      }
    }
    for (int r = 0; r < program_.ranks(); ++r) {
      for (int p = 0; p < static_cast<int>(program_.steps[r].size()); ++p) {
        const int s = program_.steps[r][p].command.stage;
        if (s < 0 || s >= stages) return WrongAt(r, p, "no such stage");
      }
    }
    return absl::OkStatus();
  }

  // What the checks of single ranks keep, all of it at once: a stage is one
  // rank's, and there may be thousands of both.
  void MakeTables() {
    for (const StageSlots& stage : program_.stages) {
      stash_.emplace_back(stage.slots, false);
      gradient_.emplace_back(stage.local_gradient_slots, false);
    }
    held_.assign(program_.stages.size(), 0);
    left_.assign(program_.stages.size(), program_.micro_batches);
    reductions_.assign(program_.stages.size(), 0);
    takes_tied_gradient_.assign(program_.ranks(), false);
    takes_tied_sum_.assign(program_.ranks(), false);
    for (const Edge& edge : program_.edges) {
      if (edge.kind == EdgeKind::kTiedGradient) {
        takes_tied_gradient_[edge.target_rank] = true;
      } else if (edge.kind == EdgeKind::kTiedSum) {
        takes_tied_sum_[edge.target_rank] = true;
      }
    }
  }

  // Dataflow has matched sends with receives; this finds those left out.
  absl::Status CheckEveryOutputIsSent() const {
    const Placement& placement = program_.placement;
    for (int r = 0; r < program_.ranks(); ++r) {
      for (int p = 0; p < static_cast<int>(program_.steps[r].size()); ++p) {
        const LoweredStep& step = program_.steps[r][p];
        if (step.kind != StepKind::kCompute) continue;
        const int s = step.command.stage;
        const auto remote = [&](int other) {
          return other >= 0 && other < placement.stages() &&
                 !placement.same_rank(s, other);
        };
        const bool forward = step.command.op == Op::kForward;
        const bool input = ProducesInputGradient(step.command.op);
        const bool sends =
            (forward && remote(s + 1)) || (input && remote(s - 1));
        const bool takes =
            (forward && remote(s - 1)) || (input && remote(s + 1));
        if (sends != (step.send_edge != kNone)) {
          return WrongAt(
              r, p,
              sends ? "does not send its output" : "sends what nobody takes");
        }
        if (takes != (step.receive_edge != kNone)) {
          return WrongAt(
              r, p,
              takes ? "does not receive its input" : "receives what it has");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSlotNumbers() const {
    SlotNumberer numberer(program_);
    for (int r = 0; r < program_.ranks(); ++r) {
      for (int p = 0; p < static_cast<int>(program_.steps[r].size()); ++p) {
        const LoweredStep& step = program_.steps[r][p];
        const StepSlots used{.stash = step.stash_slot,
                             .receive = step.receive_slot,
                             .send = step.send_slot};
        const StepSlots rule = numberer.Next(step);
        if (used == rule) continue;
        return WrongAt(
            r, p,
            absl::StrCat("uses slots ", used.stash, ", ", used.receive, ", ",
                         used.send, "; the rule gives ", rule.stash, ", ",
                         rule.receive, ", ", rule.send));
      }
    }
    return absl::OkStatus();
  }

  // No two micro-batches in one slot of those that the rank fills by itself.
  absl::Status CheckOwnSlots(int rank) {
    const Placement& placement = program_.placement;
    const std::vector<LoweredStep>& steps = program_.steps[rank];
    const int stages = placement.stages();
    for (int p = 0; p < static_cast<int>(steps.size()); ++p) {
      const LoweredStep& step = steps[p];
      if (step.kind != StepKind::kCompute) continue;
      const int s = step.command.stage;
      const auto fill = [&](std::vector<bool>* slots, int slot) {
        const bool was_free = !(*slots)[slot];
        (*slots)[slot] = true;
        return was_free;
      };
      const auto local = [&](int a, int b) {
        return a >= 0 && b < stages && placement.same_rank(a, b);
      };
      if (step.command.op == Op::kForward) {
        if (!local(s - 1, s) && !fill(&stash_[s], step.stash_slot)) {
          return WrongAt(rank, p, "its stash slot is not free");
        }
        if (local(s, s + 1) && !fill(&stash_[s + 1], step.send_slot)) {
          return WrongAt(rank, p, "the next stage's slot is not free");
        }
      }
      if (ProducesInputGradient(step.command.op)) {
        if (local(s - 1, s) && !fill(&gradient_[s - 1], step.send_slot)) {
          return WrongAt(rank, p, "its local gradient slot is not free");
        }
        if (local(s, s + 1)) gradient_[s][step.receive_slot] = false;
      }
      if (step.command.op == Op::kBackwardInput &&
          ++held_[s] > program_.stages[s].held) {
        return WrongAt(rank, p, "no place is free for what W needs");
      }
      held_[s] -= step.command.op == Op::kBackwardWeight;
      if (step.releases_stash()) stash_[s][step.stash_slot] = false;
    }
    return absl::OkStatus();
  }

  // Invariant 8, the places of the tied steps, and the barrier.
  absl::Status CheckLastSteps(int rank) {
    const std::vector<LoweredStep>& steps = program_.steps[rank];
    const int stages = program_.placement.stages();
    bool tied_pending[2] = {takes_tied_gradient_[rank], takes_tied_sum_[rank]};
    int reduced = 0;
    for (int p = 0; p < static_cast<int>(steps.size()); ++p) {
      const LoweredStep& step = steps[p];
      const int s = step.command.stage;
      const bool done = program_.placement.rank_of(s) == rank && left_[s] == 0;
      switch (step.kind) {
        case StepKind::kCompute:
          left_[s] -= step.releases_stash();
          break;
        case StepKind::kTiedSend:
        case StepKind::kTiedReduce:
          if (!done) {
            return WrongAt(rank, p, "comes before its stage's last W or B");
          }
          if (step.kind == StepKind::kTiedReduce) tied_pending[0] = false;
          break;
        case StepKind::kTiedReceive:
          tied_pending[1] = false;
          break;
        case StepKind::kReplicaReduce:
          if (!done) {
            return WrongAt(rank, p, "comes before its stage's last W or B");
          }
          if ((s == 0 && tied_pending[0]) ||
              (s == stages - 1 && tied_pending[1])) {
            return WrongAt(rank, p, "comes before the tied sum");
          }
          if (++reductions_[s] > 1) return WrongAt(rank, p, "is there twice");
          ++reduced;
          break;
        case StepKind::kBarrier:
          if (p + 1 != static_cast<int>(steps.size())) {
            return WrongAt(rank, p, "is not the last step");
          }
          break;
      }
    }
    if (steps.empty() || steps.back().kind != StepKind::kBarrier) {
      return Wrong(absl::StrCat("rank ", rank, " has no barrier"));
    }
    const int mine = stages / program_.ranks();
    if (reduced != 0 && reduced != mine) {
      return Wrong(absl::StrCat("rank ", rank, " reduces ", reduced, " of its ",
                                mine, " stages over replicas"));
    }
    return absl::OkStatus();
  }

  // Invariant 7.
  absl::Status CheckBytes(int rank, const RankParts& parts) const {
    const MemoryUse use = MemoryUseOf(program_, rank, parts, memory_);
    if (use.in_flight_at_end != 0) {
      return Wrong(absl::StrCat("rank ", rank, " ends with ",
                                use.in_flight_at_end,
                                " activations in flight"));
    }
    if (memory_.limits.empty() || use.total() <= memory_.limits[rank]) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(
        absl::StrCat(program_.name, ": rank ", rank, " needs ", use.total(),
                     " bytes (", use.activations, " of activations, ",
                     use.transfers, " of gradient slots and send buffers), ",
                     use.total() - memory_.limits[rank],
                     " more than its limit of ", memory_.limits[rank]));
  }

  // Invariant 5.
  absl::Status CheckDeadlock(const Dataflow& flow) const {
    Costs costs;
    costs.stages.resize(program_.stages.size());
    const Evaluation evaluation = Evaluate(flow, DurationsOf(program_, costs));
    if (evaluation.finished) return absl::OkStatus();
    return Wrong(
        absl::StrCat("deadlock with rendezvous sends; ",
                     ExplainDeadlock(program_, flow, evaluation).text));
  }

  const LoweredProgram& program_;
  const Memory& memory_;
  std::vector<std::vector<bool>> stash_;     // (stage, slot): taken.
  std::vector<std::vector<bool>> gradient_;  // (stage, slot): taken.
  std::vector<int> held_;                    // (stage): places taken by I.
  std::vector<int> left_;                  // (stage): weight gradients to come.
  std::vector<int> reductions_;            // (stage)
  std::vector<bool> takes_tied_gradient_;  // (rank): as the embedding's.
  std::vector<bool> takes_tied_sum_;       // (rank): as the head's.
};

}  // namespace

absl::Status VerifyLowered(const LoweredProgram& program,
                           const Memory& memory) {
  return LoweredChecker(program, memory).Run();
}

}  // namespace penstock::coordinator::schedule
