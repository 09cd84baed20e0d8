#include "coordinator/service/schedule_answers.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/message_limit.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/command_stream.h"
#include "coordinator/schedule/costs.h"
#include "coordinator/schedule/critical_savings.h"
#include "coordinator/schedule/lowered_program.h"
#include "coordinator/schedule/lowering.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/placement.h"
#include "coordinator/schedule/schedule.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"
#include "coordinator/service/planned_schedule.h"

namespace penstock::coordinator::service {
namespace {

// Every order can be sent, and an answer can hold every order.
static_assert(schedule::kMaxCsvBytes < common::rpc::kMaxControlMessageBytes);

v1::SimulatedRank RankAnswer(const schedule::LoweredProgram& program,
                             const schedule::Simulation& simulation, int rank,
                             bool commands) {
  const schedule::RankSimulation& simulated = simulation.ranks[rank];
  v1::SimulatedRank out;
  out.set_busy(simulated.busy);
  out.set_idle(simulation.makespan - simulated.busy);
  out.set_first_start(simulated.first_start);
  out.set_last_end(simulated.last_end);
  out.set_peak_in_flight(simulated.peak_in_flight);
  out.set_peak_activations(static_cast<double>(simulated.peak_in_flight) *
                           program.ranks() / program.placement.stages());
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
  return out;
}

absl::Status AddSavings(const schedule::LoweredProgram& program,
                        const schedule::Costs& costs,
                        const schedule::Simulation& simulation,
                        v1::SimulateScheduleResponse& response) {
  ASSIGN_OR_RETURN(const std::vector<schedule::CriticalSaving> savings,
                   schedule::CriticalSavings(program, costs, simulation));
  for (const schedule::CriticalSaving& saving : savings) {
    v1::CriticalSaving& out = *response.add_savings();
    out.set_what(schedule::ToString(program, saving));
    if (saving.edge == schedule::kNone) {
      out.set_op(dispatch::OpToProto(saving.op));
      out.set_stage(saving.stage);
    } else {
      *out.mutable_edge() = dispatch::EdgeToProto(program.edges[saving.edge]);
    }
    out.set_count(saving.count);
    out.set_on_path(saving.on_path);
    out.set_share(saving.share);
    if (saving.saved.has_value()) out.set_saved(*saving.saved);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::SimulateScheduleResponse> SimulateSchedule(
    const v1::SimulateScheduleRequest& request) {
  ASSIGN_OR_RETURN(const PlannedSchedule planned, PlanSchedule(request));
  const schedule::Schedule& plan = planned.plan;
  const schedule::LoweringOptions& options = planned.options;
  const schedule::LoweredProgram& program = planned.program;
  ASSIGN_OR_RETURN(const schedule::Simulation simulation,
                   schedule::Simulate(program, options.costs, options.memory));
  if (!std::isfinite(simulation.makespan)) {
    return absl::InvalidArgumentError(
        "the times are too large: their sum is no finite number");
  }

  const schedule::Shape shape{.ranks = plan.ranks(),
                              .chunks = plan.chunks(),
                              .micro_batches = plan.micro_batches};
  using Request = v1::SimulateScheduleRequest;
  const Request::Detail detail = request.detail();
  const bool commands = detail == Request::DETAIL_UNSPECIFIED ||
                        detail == Request::DETAIL_COMMANDS;
  const bool savings = detail == Request::DETAIL_UNSPECIFIED ||
                       detail == Request::DETAIL_SUMMARY;
  const bool order =
      detail == Request::DETAIL_UNSPECIFIED || detail == Request::DETAIL_ORDER;
  v1::SimulateScheduleResponse response;
  response.set_makespan(simulation.makespan);
  response.set_bubble_rate(simulation.bubble_rate);
  response.set_span_bubble_rate(simulation.span_bubble_rate);
  response.set_chunks(plan.chunks());
  response.set_placement(schedule::PlacementName(plan.placement));
  response.set_found(planned.found);
  if (const auto closed = request.has_file() ? std::nullopt
                                             : schedule::ClosedFormOf(
                                                   request.schedule(), shape);
      closed.has_value()) {
    response.mutable_closed_form()->set_formula(closed->formula);
    response.mutable_closed_form()->set_bubble_rate(closed->bubble_rate);
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    *response.add_ranks() = RankAnswer(program, simulation, rank, commands);
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
  if (savings) {
    RETURN_IF_ERROR(AddSavings(program, options.costs, simulation, response));
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
