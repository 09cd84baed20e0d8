// `penstock simulate`: a schedule through the code that every job goes through.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/command.h"
#include "client/commands/output_format.h"
#include "client/commands/shape_flags.h"
#include "client/report/heatmap.h"
#include "client/text_table.h"
#include "common/ids/op_letter.h"

namespace penstock::client::commands {
namespace {

struct SimulateFlags {
  std::string schedule;
  ShapeFlags shape;
  std::optional<double> forward, backward_input, backward_weight, transfer;
  double memory_limit = 0;
  std::string format = "table";
  std::string address;
};

std::string Json(const v1::SimulateScheduleResponse& response) {
  nlohmann::ordered_json json = {
      {"makespan", response.makespan()},
      {"bubble_rate", response.bubble_rate()},
      {"span_bubble_rate", response.span_bubble_rate()},
      {"ranks", nlohmann::ordered_json::array()},
      {"edges", nlohmann::ordered_json::array()},
      {"critical_path",
       std::vector<std::string>(response.critical_path().begin(),
                                response.critical_path().end())}};
  for (const v1::SimulatedRank& rank : response.ranks()) {
    json["ranks"].push_back(
        {{"busy", rank.busy()}, {"peak_in_flight", rank.peak_in_flight()}});
  }
  for (const v1::SimulatedEdge& edge : response.edges()) {
    json["edges"].push_back({{"from", edge.from()},
                             {"to", edge.to()},
                             {"capacity", edge.capacity()}});
  }
  return absl::StrCat(json.dump(2), "\n");
}

std::string Table(const v1::SimulateScheduleResponse& response) {
  std::vector<std::vector<std::string>> ranks = {
      {"RANK", "BUSY", "PEAK IN FLIGHT"}};
  for (int i = 0; i < response.ranks_size(); ++i) {
    ranks.push_back({absl::StrCat(i), absl::StrCat(response.ranks(i).busy()),
                     absl::StrCat(response.ranks(i).peak_in_flight())});
  }
  std::vector<std::vector<std::string>> edges = {
      {"EDGE", "FROM RANK", "TO RANK", "CAPACITY"}};
  for (const v1::SimulatedEdge& edge : response.edges()) {
    edges.push_back({absl::StrCat(edge.edge().source_stage(), "->",
                                  edge.edge().target_stage()),
                     absl::StrCat(edge.from()), absl::StrCat(edge.to()),
                     absl::StrCat(edge.capacity())});
  }
  return absl::StrCat(
      absl::StrFormat(
          "makespan %g  bubble rate %.2f %%  span bubble %.2f %%\n\n",
          response.makespan(), 100 * response.bubble_rate(),
          100 * response.span_bubble_rate()),
      FormatTable(ranks), edges.size() > 1 ? "\n" : "",
      edges.size() > 1 ? FormatTable(edges) : "");
}

std::string Svg(const SimulateFlags& flags,
                const v1::SimulateScheduleResponse& response) {
  std::vector<report::HeatmapBox> boxes;
  for (int rank = 0; rank < response.ranks_size(); ++rank) {
    for (const v1::SimulatedCommand& command :
         response.ranks(rank).commands()) {
      boxes.push_back({.rank = rank,
                       .op = common::ids::OpLetter(command.op())[0],
                       .stage = command.stage(),
                       .micro_batch = command.micro_batch(),
                       .start = command.start(),
                       .end = command.end()});
    }
  }
  return report::HeatmapSvg(
      std::move(boxes),
      {.title = absl::StrFormat("%s, K = %d, M = %d", flags.schedule,
                                flags.shape.stages, flags.shape.micro_batches),
       .subtitle =
           absl::StrFormat("makespan %g, bubble rate %.2f %%",
                           response.makespan(), 100 * response.bubble_rate()),
       .unit = report::HeatmapOptions::Unit::kAbstract,
       .frame = report::HeatmapOptions::Frame::kFile});
}

int RunSimulate(const SimulateFlags& flags, const Environment& environment) {
  if (absl::StartsWith(flags.schedule, "file:")) {
    return Fail(absl::InvalidArgumentError(
        "--schedule: simulate takes a schedule's name; `penstock verify FILE` "
        "proves and times one of a file"));
  }
  v1::SimulateScheduleRequest request;
  request.set_schedule(flags.schedule);
  SetShape(flags.shape, request);
  request.set_memory_limit(flags.memory_limit);
  using Request = v1::SimulateScheduleRequest;
  request.set_detail(flags.format == "csv"   ? Request::DETAIL_ORDER
                     : flags.format == "svg" ? Request::DETAIL_COMMANDS
                                             : Request::DETAIL_SUMMARY);
  if (flags.forward) request.set_forward(*flags.forward);
  if (flags.backward_input) request.set_backward_input(*flags.backward_input);
  if (flags.backward_weight) {
    request.set_backward_weight(*flags.backward_weight);
  }
  if (flags.transfer) request.set_transfer(*flags.transfer);
  auto coordinator = AnyCoordinator::Find(flags.address, environment);
  if (!coordinator.ok()) return Fail(coordinator.status());
  const auto response = coordinator->client().SimulateSchedule(request);
  if (!response.ok()) return Fail(response.status());
  const std::string out = flags.format == "json"  ? Json(*response)
                          : flags.format == "csv" ? response->csv()
                          : flags.format == "svg" ? Svg(flags, *response)
                                                  : Table(*response);
  std::fputs(out.c_str(), stdout);
  return 0;
}

}  // namespace

void AddSimulate(CLI::App& app, const Environment& environment,
                 Chosen& chosen) {
  auto* command = app.add_subcommand(
      "simulate", "Generate, prove and time a pipeline schedule");
  auto flags = std::make_shared<SimulateFlags>();
  command
      ->add_option("--schedule", flags->schedule,
                   "A name, as in a job file (a file's order: `verify`)")
      ->required();
  AddShapeFlags(*command, flags->shape);
  command->add_option("--forward", flags->forward,
                      "Time of F of a rank's whole share of layers (1)");
  command->add_option("--backward-input", flags->backward_input,
                      "Time of I of a rank's whole share of layers (1)");
  command->add_option("--backward-weight", flags->backward_weight,
                      "Time of W of a rank's whole share of layers (1)");
  command->add_option("--transfer", flags->transfer, "Time of a message (0)");
  command->add_option("--memory-limit", flags->memory_limit,
                      "A rank's limit, in activations of a whole stage");
  AnyCoordinator::AddFlag(*command, flags->address);
  AddOutputFlag(*command, flags->format, {"table", "json", "csv", "svg"});
  command->callback([flags, &environment, &chosen] {
    chosen = [flags, &environment] { return RunSimulate(*flags, environment); };
  });
}

}  // namespace penstock::client::commands
