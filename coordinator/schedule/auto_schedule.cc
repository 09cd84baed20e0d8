#include "coordinator/schedule/auto_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/auto_admission.h"
#include "coordinator/schedule/auto_bound.h"
#include "coordinator/schedule/auto_least_memory.h"
#include "coordinator/schedule/auto_problem.h"
#include "coordinator/schedule/auto_search.h"
#include "coordinator/schedule/auto_slot_room.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::schedule {
namespace {

constexpr absl::string_view kName = "auto";

// Chunks a rank: each number up to the first is tried, the most is the second.
constexpr int kEachUpTo = 8;
constexpr int kMostChunks = 64;

// Of all searches together (auto_search.h): at most some 50 ms.
constexpr int64_t kListWork = 400'000;
constexpr int64_t kBeamWork = 20'000'000;
// Steps of at most so many lower bounds are good enough; for longer ones orders
// that leave more room are tried, on so many rungs (OnRungBelow).
constexpr double kNearBound = 1.002;
constexpr int kRungs = 6;

bool Less(double a, double b) { return a < b * (1 - kTolerance); }

// An order that may be chosen, timed as if slots cost nothing: lowering can
// only make it longer.
struct Candidate {
  size_t choice = 0;
  std::string order;
  Orders orders;
  double makespan = 0;
  double held = 0;  // Most that a rank holds; only compared.
};

// Activations in flight, in shares of a rank's layers, where there are no
// sizes; else bytes.
double MostHeld(const AutoProblem& problem, const Memory& memory,
                const Orders& orders) {
  if (memory.stages.empty()) {
    AutoProblem counted = problem;
    counted.held.assign(problem.stages,
                        {.held_until_input = 1, .held_until_weight = 1});
    const std::vector<int64_t> peaks = PeakHeld(counted, orders);
    return static_cast<double>(*std::max_element(peaks.begin(), peaks.end())) /
           problem.chunks;
  }
  const std::vector<int64_t> peaks = PeakHeld(problem, orders);
  return static_cast<double>(*std::max_element(peaks.begin(), peaks.end()));
}

absl::Status CheckChoice(int micro_batches, const AutoChoice& choice) {
  RETURN_IF_ERROR(CheckPlacement(choice.placement));
  RETURN_IF_ERROR(CheckShape(
      kName, {.ranks = choice.placement.ranks,
              .chunks = choice.placement.stages() / choice.placement.ranks,
              .micro_batches = micro_batches}));
  if (choice.options.send_buffers < 1 || choice.options.uniform_slots) {
    return absl::InvalidArgumentError(
        "auto: needs send buffers, and computes its slots itself");
  }
  if (!choice.options.costs.stages.empty()) {
    RETURN_IF_ERROR(
        CheckCosts(choice.options.costs, choice.placement.stages()));
  }
  return CheckMemory(choice.options.memory, choice.placement.stages(),
                     choice.placement.ranks);
}

class Chooser {
 public:
  Chooser(int micro_batches, absl::Span<const AutoChoice> choices)
      : micro_batches_(micro_batches) {
    for (const AutoChoice& choice : choices) {
      Laid& laid = laid_.emplace_back();
      laid.placement = choice.placement;
      laid.options = choice.options;
      laid.accepts = choice.accepts;
      if (laid.options.costs.stages.empty()) {
        laid.options.costs.stages = UniformCosts(laid.rank_shape(), {}).stages;
      }
      laid.bound = StepLowerBound(micro_batches, laid.placement, laid.options);
    }
  }

  absl::StatusOr<AutoSchedule> Run() && {
    for (size_t i = 0; i < laid_.size(); ++i) AddFixed(i);
    for (const Laid& laid : laid_) searches_ += SlotsTakeRoom(laid) ? 2 : 1;
    for (size_t i = 0; i < laid_.size(); ++i) {
      const Laid& laid = laid_[i];
      if (SlotsTakeRoom(laid)) {
        AddFound(i, WithRoomForSlots(laid.placement, laid.options, 1));
      }
      AddFound(i, WithRoomForSlots(laid.placement, laid.options, 0));
    }
    RETURN_IF_ERROR(TakeBest());
    RETURN_IF_ERROR(TryLessRoom());
    if (!best_.has_value()) RETURN_IF_ERROR(TakeSequential());
    return std::move(*best_);
  }

 private:
  struct Laid {
    Placement placement;
    LoweringOptions options;  // With costs.
    std::function<absl::Status(const Schedule&)> accepts;
    double bound = 0;
    RankShape rank_shape() const {
      return {.ranks = placement.ranks,
              .chunks = placement.stages() / placement.ranks};
    }
  };

  static bool SlotsTakeRoom(const Laid& laid) {
    const Memory& memory = laid.options.memory;
    return !memory.limits.empty() &&
           (memory.slot.activation > 0 || memory.slot.gradient > 0);
  }

  // Every fixed schedule that has a meaning on the placement and whose
  // activations leave room for the fewest slots.
  void AddFixed(size_t i) {
    const Laid& laid = laid_[i];
    const Shape shape{.ranks = laid.placement.ranks,
                      .chunks = laid.rank_shape().chunks,
                      .micro_batches = micro_batches_};
    const AutoProblem problem =
        MakeAutoProblem(micro_batches_, laid.placement,
                        WithRoomForSlots(laid.placement, laid.options, 0));
    for (const absl::string_view name : GeneratorNames()) {
      if (name == kName) continue;
      absl::StatusOr<Schedule> schedule = Generate(name, shape);
      if (!schedule.ok() || !(schedule->placement == laid.placement)) continue;
      AddCandidate(i, std::string(name), problem, std::move(schedule->orders));
    }
  }

  void AddCandidate(size_t i, std::string order, const AutoProblem& problem,
                    Orders orders) {
    const std::vector<int64_t> peaks = PeakHeld(problem, orders);
    for (int r = 0; r < problem.ranks; ++r) {
      if (peaks[r] > problem.budget[r]) return;
    }
    const OrderTiming timing = TimeOrders(problem, orders);
    if (!timing.finished) return;
    known_ = std::min(known_, timing.makespan);
    const double held = MostHeld(problem, laid_[i].options.memory, orders);
    candidates_.push_back({.choice = i,
                           .order = std::move(order),
                           .orders = std::move(orders),
                           .makespan = timing.makespan,
                           .held = held});
  }

  // What a search finds that leaves room for more slots than the fewest. It
  // does not know what too few of them cost.
  void AddFound(size_t i, const LoweringOptions& options) {
    const Laid& laid = laid_[i];
    const AutoProblem problem =
        MakeAutoProblem(micro_batches_, laid.placement, options);
    std::optional<FoundOrder> found =
        SearchOrder(problem, {.bound = laid.bound,
                              .known = known_,
                              .list_work = kListWork / searches_,
                              .beam_work = kBeamWork / searches_});
    if (!found.has_value()) return;
    AddCandidate(i, "search", problem, std::move(found->orders));
  }

  // Less for activations leaves more for slots, without which some orders are
  // slow and others do not run. And a search with much room can miss what it
  // finds with less.
  absl::Status TryLessRoom() {
    double bound = kNever;
    for (const Laid& laid : laid_) bound = std::min(bound, laid.bound);
    for (int rung = 0; rung < kRungs; ++rung) {
      if (best_.has_value() && !Less(bound * kNearBound, best_->makespan)) {
        break;
      }
      known_ = best_.has_value() ? best_->makespan : kNever;
      for (size_t i = 0; i < laid_.size(); ++i) {
        const Laid& laid = laid_[i];
        if (!SlotsTakeRoom(laid)) continue;
        AddFound(i, OnRungBelow(laid.placement, laid.options, rung));
      }
      RETURN_IF_ERROR(TakeBest());
    }
    return absl::OkStatus();
  }

  // Lowers candidates, the best first, until none that is left can be better
  // than what the lowered ones really take.
  absl::Status TakeBest() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.makespan < b.makespan;
                     });
    // Equal ones by what they hold.
    for (size_t first = 0; first < candidates_.size();) {
      size_t last = first + 1;
      while (last < candidates_.size() &&
             !Less(candidates_[first].makespan, candidates_[last].makespan)) {
        ++last;
      }
      std::stable_sort(candidates_.begin() + first, candidates_.begin() + last,
                       [](const Candidate& a, const Candidate& b) {
                         return a.held < b.held;
                       });
      first = last;
    }
    for (Candidate& candidate : candidates_) {
      if (best_.has_value() && !Less(candidate.makespan, best_->makespan)) {
        break;
      }
      RETURN_IF_ERROR(Take(std::move(candidate)));
    }
    candidates_.clear();
    return absl::OkStatus();
  }

  // The last resort. ResourceExhausted where not even that fits.
  absl::Status TakeSequential() {
    std::optional<Shortage> least;
    for (size_t i = 0; i < laid_.size(); ++i) {
      const Laid& laid = laid_[i];
      const Shortage shortage = LargestShortage(laid.placement, laid.options);
      if (shortage.missing() <= 0) {
        RETURN_IF_ERROR(
            Take({.choice = i,
                  .order = "sequential",
                  .orders = Sequential(MakeAutoProblem(
                      micro_batches_, laid.placement, laid.options))}));
      } else if (!least.has_value() || shortage.missing() < least->missing()) {
        least = shortage;
      }
    }
    if (best_.has_value()) return absl::OkStatus();
    if (!refused_.ok()) return refused_;
    CHECK(least.has_value()) << "an order that fits was refused";
    return absl::ResourceExhaustedError(absl::StrCat(
        "auto: no order meets the memory limits: rank ", least->rank, " needs ",
        least->held, " bytes of activations for one micro-batch",
        least->slots > 0 ? absl::StrCat(" and ", least->slots,
                                        " bytes of slots and send buffers")
                         : "",
        ", ", least->missing(), " more than its limit of ", least->limit));
  }

  absl::Status Take(Candidate candidate) {
    const Laid& laid = laid_[candidate.choice];
    Schedule schedule{.name = std::string(kName),
                      .placement = laid.placement,
                      .micro_batches = micro_batches_,
                      .orders = std::move(candidate.orders)};
    if (laid.accepts != nullptr) {
      const absl::Status accepted = laid.accepts(schedule);
      refused_.Update(accepted);
      if (!accepted.ok()) return absl::OkStatus();
    }
    absl::StatusOr<LoweredProgram> program =
        LowerVerified(schedule, laid.options);
    if (absl::IsResourceExhausted(program.status())) return absl::OkStatus();
    RETURN_IF_ERROR(program.status());
    ASSIGN_OR_RETURN(
        const Simulation simulation,
        Simulate(*program, laid.options.costs, laid.options.memory));
    if (best_.has_value() && !Less(simulation.makespan, best_->makespan)) {
      return absl::OkStatus();
    }
    best_ = {.choice = candidate.choice,
             .order = std::move(candidate.order),
             .makespan = simulation.makespan,
             .schedule = std::move(schedule),
             .program = *std::move(program)};
    return absl::OkStatus();
  }

  const int micro_batches_;
  std::vector<Laid> laid_;
  std::vector<Candidate> candidates_;
  int64_t searches_ = 0;  // Among which the work is shared.
  double known_ = kNever;
  std::optional<AutoSchedule> best_;
  absl::Status refused_;  // The first that a caller said.
};

}  // namespace

std::vector<Placement> PlacementsOf(const RankShape& shape) {
  std::vector<Placement> placements = {LoopPlacement(shape)};
  // On one rank the V is the loop.
  if (shape.chunks == 2 && shape.ranks > 1) {
    placements.push_back(VPlacement(shape));
  }
  return placements;
}

std::vector<Placement> PlacementsToTry(const Shape& shape) {
  const int most = std::min(shape.chunks, kMostChunks);
  std::vector<Placement> placements;
  for (int chunks = 1;;) {
    const RankShape ranks{.ranks = shape.ranks, .chunks = chunks};
    if (!placements.empty() &&
        int64_t{ranks.stages()} * shape.micro_batches > kMaxSearchedCells) {
      break;
    }
    for (Placement& placement : PlacementsOf(ranks)) {
      placements.push_back(std::move(placement));
    }
    if (chunks >= most) break;
    chunks = chunks < kEachUpTo ? chunks + 1 : std::min(2 * chunks, most);
  }
  return placements;
}

absl::StatusOr<AutoSchedule> MakeAutoSchedule(
    int micro_batches, absl::Span<const AutoChoice> choices) {
  if (choices.empty()) {
    return absl::InvalidArgumentError("auto: no placement to choose from");
  }
  for (const AutoChoice& choice : choices) {
    RETURN_IF_ERROR(CheckChoice(micro_batches, choice));
  }
  return Chooser(micro_batches, choices).Run();
}

absl::StatusOr<Schedule> GenerateAuto(const Shape& shape) {
  RETURN_IF_ERROR(CheckShape(kName, shape));
  std::vector<AutoChoice> choices;
  for (Placement& placement :
       PlacementsOf({.ranks = shape.ranks, .chunks = shape.chunks})) {
    choices.push_back({.placement = std::move(placement)});
  }
  ASSIGN_OR_RETURN(AutoSchedule made,
                   MakeAutoSchedule(shape.micro_batches, choices));
  return std::move(made.schedule);
}

}  // namespace penstock::coordinator::schedule
