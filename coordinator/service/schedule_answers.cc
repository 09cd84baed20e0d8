#include "coordinator/service/schedule_answers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/rpc/message_limit.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/command_stream.h"
#include "coordinator/schedule/auto_schedule.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/schedule.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::service {
namespace {

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
  const char* unit = chunks == 1 ? "activations" : "chunk activations";
  const double whole = std::floor(limit * chunks);
  return absl::InvalidArgumentError(absl::StrCat(
      whole == limit * chunks
          ? ""
          : absl::StrCat("memory_limit ", limit, " has room for ", whole, " ",
                         unit, ": "),
      absl::StrReplaceAll(status.message(), {{"bytes of activations", unit}})));
}

// A schedule, and what was given and what came out when it was lowered.
struct Planned {
  schedule::Schedule plan;
  schedule::LoweringOptions options;
  schedule::LoweredProgram program;
};

absl::StatusOr<Planned> PlanFixed(const v1::SimulateScheduleRequest& request,
                                  const schedule::Shape& shape) {
  Planned planned;
  ASSIGN_OR_RETURN(planned.plan, schedule::Generate(request.schedule(), shape));
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
absl::StatusOr<Planned> PlanAuto(const v1::SimulateScheduleRequest& request,
                                 const schedule::Shape& shape) {
  RETURN_IF_ERROR(schedule::CheckShape(request.schedule(), shape));
  std::vector<schedule::AutoChoice> choices;
  const auto add = [&](const schedule::Placement& placement,
                       const schedule::RankShape& ranks) -> absl::Status {
    ASSIGN_OR_RETURN(const schedule::LoweringOptions options,
                     Options(request, ranks));
    choices.push_back({.placement = placement, .options = options});
    return absl::OkStatus();
  };
  const int most_chunks = request.chunks() == 0 ? 2 : request.chunks();
  for (int v = 1; v <= most_chunks; ++v) {
    if (!schedule::CheckShape(request.schedule(),
                              {.ranks = shape.ranks,
                               .chunks = v,
                               .micro_batches = shape.micro_batches})
             .ok()) {
      break;
    }
    const schedule::RankShape ranks{.ranks = shape.ranks, .chunks = v};
    if (v == 2) {
      RETURN_IF_ERROR(add(schedule::VPlacement(ranks), ranks));
      if (request.chunks() == 0) break;
    }
    RETURN_IF_ERROR(add(schedule::LoopPlacement(ranks), ranks));
  }
  absl::StatusOr<schedule::AutoSchedule> made =
      schedule::MakeAutoSchedule(shape.micro_batches, choices);
  RETURN_IF_ERROR(Refusal(made.status(), request.memory_limit(), 1));
  return Planned{.plan = std::move(made->schedule),
                 .options = std::move(choices[made->choice].options),
                 .program = std::move(made->program)};
}

}  // namespace

absl::StatusOr<v1::SimulateScheduleResponse> SimulateSchedule(
    const v1::SimulateScheduleRequest& request) {
  const schedule::Shape shape{
      .ranks = request.stages(),
      .chunks = request.chunks() == 0 ? 1 : request.chunks(),
      .micro_batches = request.micro_batches()};
  const schedule::NamedSchedule* const row =
      schedule::FindSchedule(request.schedule());
  const bool searched =
      row != nullptr && row->value == schedule::ScheduleKind::kAuto;
  ASSIGN_OR_RETURN(const Planned planned, searched ? PlanAuto(request, shape)
                                                   : PlanFixed(request, shape));
  const schedule::Schedule& plan = planned.plan;
  const schedule::LoweringOptions& options = planned.options;
  const schedule::LoweredProgram& program = planned.program;
  ASSIGN_OR_RETURN(const schedule::Simulation simulation,
                   schedule::Simulate(program, options.costs, options.memory));
  if (!std::isfinite(simulation.makespan)) {
    return absl::InvalidArgumentError(
        "the times are too large: their sum is no finite number");
  }

  using Request = v1::SimulateScheduleRequest;
  const Request::Detail detail = request.detail();
  const bool commands = detail == Request::DETAIL_UNSPECIFIED ||
                        detail == Request::DETAIL_COMMANDS;
  const bool order =
      detail == Request::DETAIL_UNSPECIFIED || detail == Request::DETAIL_ORDER;
  v1::SimulateScheduleResponse response;
  response.set_makespan(simulation.makespan);
  response.set_bubble_rate(simulation.bubble_rate);
  response.set_span_bubble_rate(simulation.span_bubble_rate);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    v1::SimulatedRank& out = *response.add_ranks();
    out.set_busy(simulation.ranks[rank].busy);
    out.set_peak_in_flight(simulation.ranks[rank].peak_in_flight);
    for (size_t i = 0; commands && i < program.steps[rank].size(); ++i) {
      const schedule::LoweredStep& step = program.steps[rank][i];
      if (step.kind != schedule::StepKind::kCompute) continue;
      v1::SimulatedCommand& command = *out.add_commands();
      command.set_op(dispatch::OpToProto(step.command.op));
      command.set_stage(step.command.stage);
      command.set_micro_batch(step.command.micro_batch);
      command.set_start(simulation.timeline[rank][i].start);
      command.set_end(simulation.timeline[rank][i].end);
    }
  }
  for (const schedule::Edge& edge : program.edges) {
    v1::SimulatedEdge& out = *response.add_edges();
    out.set_from(edge.source_rank);
    out.set_to(edge.target_rank);
    out.set_capacity(edge.capacity);
    *out.mutable_edge() = dispatch::EdgeToProto(edge);
  }
  for (const schedule::CriticalItem& item : simulation.critical_path) {
    if (item.edge == schedule::kNone) {
      response.add_critical_path(
          schedule::ToString(program.steps[item.rank][item.position]));
    } else {
      response.add_critical_path(
          absl::StrCat(schedule::ToString(program.edges[item.edge]),
                       " message ", item.message));
    }
  }
  if (order) response.set_csv(schedule::PrintCsv(plan));
  if (const absl::Status fits = common::rpc::CheckMessageSize(response);
      !fits.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        request.schedule(), ": the answer for ", shape.ranks, " stages and ",
        shape.micro_batches, " micro-batches is too large: ", fits.message()));
  }
  return response;
}

absl::StatusOr<v1::VerifyScheduleResponse> VerifySchedule(
    const v1::VerifyScheduleRequest& request) {
  schedule::CsvOptions csv{.ranks = request.stages(),
                           .micro_batches = request.micro_batches(),
                           .name = request.file_name()};
  if (request.chunks() != 0) csv.chunks = request.chunks();
  ASSIGN_OR_RETURN(const schedule::Schedule plan,
                   schedule::ParseCsv(request.file(), csv));
  schedule::LoweringOptions options;
  if (request.has_slots()) options.uniform_slots = request.slots();
  ASSIGN_OR_RETURN(const schedule::LoweredProgram program,
                   schedule::LowerVerified(plan, options));
  ASSIGN_OR_RETURN(const schedule::Simulation simulation,
                   schedule::Simulate(
                       program, schedule::UniformCosts(plan.rank_shape(), {})));
  v1::VerifyScheduleResponse response;
  int64_t commands = 0;
  for (const auto& order : plan.orders) commands += order.size();
  response.set_commands(commands);
  response.set_makespan(simulation.makespan);
  return response;
}

}  // namespace penstock::coordinator::service
