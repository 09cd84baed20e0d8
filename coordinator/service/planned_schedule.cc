#include "coordinator/service/planned_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "coordinator/spec/scalars.h"

namespace penstock::coordinator::service {
namespace {

// Chunks that are not given are one.
schedule::Shape ShapeOf(const v1::SimulateScheduleRequest& request) {
  return {.ranks = request.stages(),
          .chunks = request.chunks() == 0 ? 1 : request.chunks(),
          .micro_batches = request.micro_batches()};
}

absl::StatusOr<double> Time(const char* name, std::optional<double> given,
                            double otherwise) {
  const double time = given.value_or(otherwise);
  if (!std::isfinite(time) || time < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", time, "; a time is a finite number of at least 0"));
  }
  return time;
}

// What the request says of times and memory, for stages of this shape.
absl::StatusOr<schedule::LoweringOptions> Options(
    const v1::SimulateScheduleRequest& request,
    const schedule::RankShape& shape) {
  const auto given = [](bool has, double value) {
    return has ? std::optional<double>(value) : std::nullopt;
  };
  schedule::RankTimes times;
  ASSIGN_OR_RETURN(
      times.forward,
      Time("forward", given(request.has_forward(), request.forward()), 1));
  ASSIGN_OR_RETURN(
      times.backward_input,
      Time("backward_input",
           given(request.has_backward_input(), request.backward_input()), 1));
  ASSIGN_OR_RETURN(
      times.backward_weight,
      Time("backward_weight",
           given(request.has_backward_weight(), request.backward_weight()), 1));
  ASSIGN_OR_RETURN(
      times.transfer,
      Time("transfer", given(request.has_transfer(), request.transfer()), 0));
  schedule::LoweringOptions options;
  options.costs = schedule::UniformCosts(shape, times);
  if (request.memory_limit() < 0 || !std::isfinite(request.memory_limit())) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_limit is ", request.memory_limit(),
                     "; it is a number of activations, or 0 for none"));
  }
  if (request.memory_limit() > 0) {
    // A byte stands for one chunk's activation; buffers cost nothing.
    options.memory.stages.assign(
        shape.stages(), {.held_until_input = 1, .held_until_weight = 1});
    options.memory.limits.assign(
        shape.ranks, static_cast<int64_t>(std::min(
                         std::floor(request.memory_limit() * shape.chunks),
                         static_cast<double>(schedule::kMaxBytes))));
  }
  return options;
}

// A limit that no order fits is a wrong request: asking again does not help.
// The unit that was given for bytes has its own name; a part of one holds
// nothing.
absl::Status Refusal(const absl::Status& status, double limit, int chunks) {
  if (!absl::IsResourceExhausted(status)) return status;
  const std::string unit = chunks == 1 ? "activation" : "chunk activation";
  const double whole = std::floor(limit * chunks);
  return absl::InvalidArgumentError(absl::StrCat(
      whole == limit * chunks
          ? ""
          : absl::StrCat("memory_limit ", spec::FormatNumber(limit),
                         " has room for ", spec::FormatNumber(whole), " ", unit,
                         whole == 1 ? ": " : "s: "),
      absl::StrReplaceAll(
          status.message(),
          {{" 1 bytes of activations", absl::StrCat(" 1 ", unit)},
           {"bytes of activations", absl::StrCat(unit, "s")}})));
}

// The order that the request sends, or a fixed one by its name.
absl::StatusOr<schedule::Schedule> OrderOf(
    const v1::SimulateScheduleRequest& request) {
  if (request.has_file()) {
    schedule::CsvOptions csv{
        .ranks = request.stages(),
        .micro_batches = request.micro_batches(),
        .name = std::string(absl::StripPrefix(request.schedule(), "file:"))};
    if (request.chunks() != 0) csv.chunks = request.chunks();
    return schedule::ParseCsv(request.file(), csv);
  }
  schedule::Shape shape = ShapeOf(request);
  const schedule::NamedSchedule* const row =
      schedule::FindSchedule(request.schedule());
  if (request.chunks() == 0 && row != nullptr) {
    shape.chunks = row->default_chunks.value_or(1);
  }
  absl::StatusOr<schedule::Schedule> made =
      schedule::Generate(request.schedule(), shape);
  if (row != nullptr) return made;
  // Generators know names alone; a request may send a file too.
  return absl::InvalidArgumentError(
      absl::StrCat(made.status().message(), ", or file:PATH"));
}

absl::StatusOr<PlannedSchedule> PlanFixed(
    const v1::SimulateScheduleRequest& request) {
  PlannedSchedule planned;
  ASSIGN_OR_RETURN(planned.plan, OrderOf(request));
  ASSIGN_OR_RETURN(planned.options,
                   Options(request, planned.plan.rank_shape()));
  absl::StatusOr<schedule::LoweredProgram> lowered =
      schedule::LowerVerified(planned.plan, planned.options);
  RETURN_IF_ERROR(
      Refusal(lowered.status(), request.memory_limit(), planned.plan.chunks()));
  planned.program = *std::move(lowered);
  return planned;
}

// The best for the request's times and limit on the loop and the V, and where a
// number of chunks is given with up to that many a rank.
absl::StatusOr<PlannedSchedule> PlanAuto(
    const v1::SimulateScheduleRequest& request) {
  schedule::Shape shape = ShapeOf(request);
  RETURN_IF_ERROR(schedule::CheckShape(request.schedule(), shape));
  if (request.chunks() == 0) shape.chunks = schedule::kChunksToTry;
  std::vector<schedule::AutoChoice> choices;
  for (schedule::Placement& placement : schedule::PlacementsToTry(shape)) {
    const schedule::RankShape ranks{.ranks = shape.ranks,
                                    .chunks = placement.stages() / shape.ranks};
    ASSIGN_OR_RETURN(const schedule::LoweringOptions options,
                     Options(request, ranks));
    choices.push_back({.placement = std::move(placement), .options = options});
  }
  absl::StatusOr<schedule::AutoSchedule> made =
      schedule::MakeAutoSchedule(shape.micro_batches, choices);
  RETURN_IF_ERROR(Refusal(made.status(), request.memory_limit(), 1));
  return PlannedSchedule{.plan = std::move(made->schedule),
                         .options = std::move(choices[made->choice].options),
                         .program = std::move(made->program),
                         .found = std::move(made->order)};
}

}  // namespace

absl::StatusOr<PlannedSchedule> PlanSchedule(
    const v1::SimulateScheduleRequest& request) {
  const schedule::NamedSchedule* const row =
      schedule::FindSchedule(request.schedule());
  const bool searched = !request.has_file() && row != nullptr &&
                        row->value == schedule::ScheduleKind::kAuto;
  return searched ? PlanAuto(request) : PlanFixed(request);
}

}  // namespace penstock::coordinator::service
