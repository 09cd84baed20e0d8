#include "coordinator/schedule/order_check.h"

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/grid.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr int kAbsent = -1;

// Where each command of a schedule is. Three roles for each stage and
// micro-batch: forward, input gradient (I or B), weight gradient (W or B).
class CommandIndex {
 public:
  enum Role { kForwardRole, kInputRole, kWeightRole, kRoles };

  explicit CommandIndex(const Schedule& schedule)
      : micro_batches_(schedule.micro_batches),
        position_(size_t{kRoles} * schedule.stages() * schedule.micro_batches,
                  kAbsent) {}

  int& at(Role role, int stage, int micro_batch) {
    return position_[(static_cast<size_t>(stage) * micro_batches_ +
                      micro_batch) *
                         kRoles +
                     role];
  }

 private:
  int micro_batches_;
  std::vector<int> position_;
};

using Role = CommandIndex::Role;

class Checker {
 public:
  explicit Checker(const Schedule& schedule)
      : schedule_(schedule),
        index_(schedule),
        last_weight_(schedule.stages(), kAbsent) {}

  absl::Status Run() {
    for (int r = 0; r < schedule_.ranks(); ++r) {
      RETURN_IF_ERROR(PlaceCommands(r));
    }
    RETURN_IF_ERROR(CheckComplete());
    for (int r = 0; r < schedule_.ranks(); ++r) {
      RETURN_IF_ERROR(CheckWithinRank(r));
    }
    RETURN_IF_ERROR(CheckEdgeOrders());
    return CheckAcrossRanks();
  }

 private:
  Op OpAt(int stage, int position) const {
    return schedule_.orders[schedule_.placement.rank_of(stage)][position].op;
  }

  // Invariants 1 (at most once, ids in range) and 3.
  absl::Status PlaceCommands(int rank) {
    const std::vector<Command>& order = schedule_.orders[rank];
    for (int p = 0; p < static_cast<int>(order.size()); ++p) {
      const Command& c = order[p];
      const Place place{rank, p};
      if (c.stage < 0 || c.stage >= schedule_.stages()) {
        return Violation(
            schedule_, place,
            absl::StrCat("there is no stage ", c.stage, ", stages are 0 to ",
                         schedule_.stages() - 1));
      }
      if (c.micro_batch < 0 || c.micro_batch >= schedule_.micro_batches) {
        return Violation(schedule_, place,
                         absl::StrCat("there is no micro-batch ", c.micro_batch,
                                      ", micro-batches are 0 to ",
                                      schedule_.micro_batches - 1));
      }
      if (const int home = schedule_.placement.rank_of(c.stage); home != rank) {
        return Violation(
            schedule_, place,
            absl::StrCat("stage ", c.stage, " is on rank ", home, " (",
                         PlacementName(schedule_.placement), " placement)"));
      }
      switch (c.op) {
        case Op::kForward:
          RETURN_IF_ERROR(PlaceOnce(Role::kForwardRole, place));
          break;
        case Op::kBackwardInput:
          RETURN_IF_ERROR(PlaceOnce(Role::kInputRole, place));
          break;
        case Op::kBackwardWeight:
          RETURN_IF_ERROR(PlaceOnce(Role::kWeightRole, place));
          break;
        case Op::kBackward:
          RETURN_IF_ERROR(PlaceOnce(Role::kInputRole, place));
          RETURN_IF_ERROR(PlaceOnce(Role::kWeightRole, place));
          break;
        default:
          return Violation(schedule_, place, "unknown operation");
      }
    }
    return absl::OkStatus();
  }

  absl::Status PlaceOnce(Role role, Place place) {
    const Command& c = schedule_.orders[place.rank][place.position];
    int& position = index_.at(role, c.stage, c.micro_batch);
    if (position != kAbsent) {
      const Command& other = schedule_.orders[place.rank][position];
      return Violation(
          schedule_, place,
          other == c ? absl::StrCat("the same command is already at position ",
                                    position)
                     : absl::StrCat(ToString(other), " at position ", position,
                                    " already does part of it: a backward is ",
                                    "either B or both I and W"));
    }
    position = place.position;
    return absl::OkStatus();
  }

  // Invariant 1 (at least once).
  absl::Status CheckComplete() {
    for (int s = 0; s < schedule_.stages(); ++s) {
      for (int m = 0; m < schedule_.micro_batches; ++m) {
        const bool forward = index_.at(Role::kForwardRole, s, m) != kAbsent;
        const bool input = index_.at(Role::kInputRole, s, m) != kAbsent;
        const bool weight = index_.at(Role::kWeightRole, s, m) != kAbsent;
        if (forward && input && weight) continue;
        std::string missing;
        if (!forward) {
          missing = ToString({Op::kForward, s, m});
        } else if (!input && !weight) {
          missing = absl::StrCat(ToString({Op::kBackward, s, m}), " (or ",
                                 ToString({Op::kBackwardInput, s, m}), " and ",
                                 ToString({Op::kBackwardWeight, s, m}), ")");
        } else {
          missing = ToString(
              {input ? Op::kBackwardWeight : Op::kBackwardInput, s, m});
        }
        const int rank = schedule_.placement.rank_of(s);
        return Violation(
            schedule_, {rank, static_cast<int>(schedule_.orders[rank].size())},
            absl::StrCat(missing, " is missing"));
      }
    }
    return absl::OkStatus();
  }

  // Invariants 2 inside one rank, and 6.
  absl::Status CheckWithinRank(int rank) {
    const std::vector<Command>& order = schedule_.orders[rank];
    for (int p = 0; p < static_cast<int>(order.size()); ++p) {
      const Command& c = order[p];
      const int s = c.stage;
      const int m = c.micro_batch;
      if (c.op == Op::kForward) {
        if (s > 0) RETURN_IF_ERROR(CheckBefore(rank, p, kForward, s - 1));
        continue;
      }
      if (ProducesInputGradient(c.op)) {
        RETURN_IF_ERROR(CheckBefore(rank, p, kForward, s));
        if (s + 1 < schedule_.stages()) {
          RETURN_IF_ERROR(CheckBefore(rank, p, kInput, s + 1));
        }
      } else {
        RETURN_IF_ERROR(CheckBefore(rank, p, kInput, s));
      }
      if (ProducesWeightGradient(c.op)) {
        if (m < last_weight_[s]) {
          return Violation(
              schedule_, {rank, p},
              absl::StrCat("weight gradients of stage ", s,
                           " must be added in ascending micro-batch order, ",
                           last_weight_[s], " came before"));
        }
        last_weight_[s] = m;
      }
    }
    return absl::OkStatus();
  }

  // That the command at (rank, position) follows its micro-batch's `role` of
  // `stage`, where both are on one rank.
  absl::Status CheckBefore(int rank, int position, Role role, int stage) {
    if (schedule_.placement.rank_of(stage) != rank) return absl::OkStatus();
    const Command& c = schedule_.orders[rank][position];
    const int needed = index_.at(role, stage, c.micro_batch);
    if (needed < position) return absl::OkStatus();
    return Violation(schedule_, {rank, position},
                     absl::StrCat("must come after ",
                                  ToString(schedule_.orders[rank][needed]),
                                  ", which is at position ", needed));
  }

  // Invariant 4: on each edge, the order of sends is the order of receives.
  absl::Status CheckEdgeOrders() {
    std::vector<std::vector<int>> forwards(schedule_.stages());
    std::vector<std::vector<int>> inputs(schedule_.stages());
    for (const auto& order : schedule_.orders) {
      for (const Command& c : order) {
        if (c.op == Op::kForward) forwards[c.stage].push_back(c.micro_batch);
        if (ProducesInputGradient(c.op)) {
          inputs[c.stage].push_back(c.micro_batch);
        }
      }
    }
    for (int s = 0; s + 1 < schedule_.stages(); ++s) {
      if (schedule_.placement.same_rank(s, s + 1)) continue;
      RETURN_IF_ERROR(
          CheckSameOrder(kForward, s, forwards[s], s + 1, forwards[s + 1]));
      RETURN_IF_ERROR(
          CheckSameOrder(kInput, s + 1, inputs[s + 1], s, inputs[s]));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSameOrder(Role role, int source,
                              const std::vector<int>& sent, int target,
                              const std::vector<int>& taken) {
    for (size_t i = 0; i < sent.size(); ++i) {
      if (sent[i] == taken[i]) continue;
      const int rank = schedule_.placement.rank_of(target);
      const int at = index_.at(role, target, taken[i]);
      const int source_rank = schedule_.placement.rank_of(source);
      const int source_at = index_.at(role, source, sent[i]);
      return Violation(
          schedule_, {rank, at},
          absl::StrCat(
              "message ", i, " of the edge from stage ", source, " is ",
              ToString(schedule_.orders[source_rank][source_at]),
              "'s output (rank ", source_rank, ", position ", source_at,
              "): sends and receives of an edge must have ", "one order"));
    }
    return absl::OkStatus();
  }

  // The command whose output (rank, position) needs from another rank, or
  // false: role and stage of the same micro-batch.
  struct Need {
    bool any = false;
    Role role = kForward;
    int stage = 0;
  };
  Need NeedOf(const Command& c) const {
    if (c.op == Op::kForward && c.stage > 0 &&
        !schedule_.placement.same_rank(c.stage, c.stage - 1)) {
      return {true, kForward, c.stage - 1};
    }
    if (ProducesInputGradient(c.op) && c.stage + 1 < schedule_.stages() &&
        !schedule_.placement.same_rank(c.stage, c.stage + 1)) {
      return {true, kInput, c.stage + 1};
    }
    return {};
  }

  // Invariant 2 across ranks: runs all ranks with buffers that never fill.
  absl::Status CheckAcrossRanks() {
    const int ranks = schedule_.ranks();
    std::vector<int> next(ranks, 0);
    std::deque<int> ready;
    for (int r = 0; r < ranks; ++r) ready.push_back(r);
    while (!ready.empty()) {
      const int r = ready.front();
      ready.pop_front();
      const std::vector<Command>& order = schedule_.orders[r];
      for (; next[r] < static_cast<int>(order.size()); ++next[r]) {
        const Command& c = order[next[r]];
        const Need need = NeedOf(c);
        if (need.any) {
          const int source = schedule_.placement.rank_of(need.stage);
          if (index_.at(need.role, need.stage, c.micro_batch) >= next[source]) {
            break;
          }
        }
        WakeNeighbour(c, r, next, &ready);
      }
    }
    for (int r = 0; r < ranks; ++r) {
      if (next[r] < static_cast<int>(schedule_.orders[r].size())) {
        return CycleFrom(r, next);
      }
    }
    return absl::OkStatus();
  }

  // Queues the rank that waits for what `c` on `rank` produces, if it does.
  void WakeNeighbour(const Command& c, int rank, const std::vector<int>& next,
                     std::deque<int>* ready) const {
    int stage = kAbsent;
    if (c.op == Op::kForward && c.stage + 1 < schedule_.stages()) {
      stage = c.stage + 1;
    } else if (ProducesInputGradient(c.op) && c.stage > 0) {
      stage = c.stage - 1;
    }
    if (stage == kAbsent) return;
    const int other = schedule_.placement.rank_of(stage);
    if (other == rank) return;
    const std::vector<Command>& order = schedule_.orders[other];
    if (next[other] >= static_cast<int>(order.size())) return;
    const Command& head = order[next[other]];
    const bool waits = head.stage == stage &&
                       head.micro_batch == c.micro_batch &&
                       (head.op == Op::kForward) == (c.op == Op::kForward);
    if (waits) ready->push_back(other);
  }

  absl::Status CycleFrom(int rank, const std::vector<int>& next) {
    // Every stuck rank waits for another stuck one: after as many steps as
    // there are ranks the walk is on the cycle.
    for (int i = 0; i < schedule_.ranks(); ++i) {
      rank = WaitsFor(rank, next).rank;
    }
    const int first = rank;
    std::vector<std::string> clauses;
    do {
      const Place needed = WaitsFor(rank, next);
      clauses.push_back(absl::StrCat(
          Describe(schedule_, {rank, next[rank]}), " must come after ",
          Describe(schedule_, needed), ", which comes after ",
          Describe(schedule_, {needed.rank, next[needed.rank]})));
      rank = needed.rank;
    } while (rank != first);
    return Violation(
        schedule_, {first, next[first]},
        absl::StrCat("no order of time fits these rows; ", JoinCycle(clauses)));
  }

  Place WaitsFor(int rank, const std::vector<int>& next) {
    const Command& c = schedule_.orders[rank][next[rank]];
    const Need need = NeedOf(c);
    return {schedule_.placement.rank_of(need.stage),
            index_.at(need.role, need.stage, c.micro_batch)};
  }

  static constexpr Role kForward = Role::kForwardRole;
  static constexpr Role kInput = Role::kInputRole;

  const Schedule& schedule_;
  CommandIndex index_;
  std::vector<int> last_weight_;  // (stage): its rank's newest W or B.
};

}  // namespace

absl::Status CheckOrder(const Schedule& schedule) {
  RETURN_IF_ERROR(CheckPlacement(schedule.placement));
  RETURN_IF_ERROR(
      CheckShape(schedule.name, {.ranks = schedule.ranks(),
                                 .chunks = schedule.chunks(),
                                 .micro_batches = schedule.micro_batches}));
  if (static_cast<int>(schedule.orders.size()) != schedule.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat(schedule.name, ": has ", schedule.orders.size(),
                     " rows, one a rank makes ", schedule.ranks()));
  }
  return Checker(schedule).Run();
}

}  // namespace penstock::coordinator::schedule
