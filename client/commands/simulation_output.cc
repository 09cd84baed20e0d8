#include "client/commands/simulation_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/report/heatmap.h"
#include "client/text_table.h"
#include "common/ids/op_letter.h"

namespace penstock::client::commands {
namespace {

using nlohmann::ordered_json;

// Of the critical path's parts; the others are only counted.
constexpr int kShownSavings = 10;

std::string Percent(double share) {
  return absl::StrFormat("%.2f %%", 100 * share);
}

std::string RankTable(const v1::SimulateScheduleResponse& response) {
  const bool chunks = response.chunks() > 1;
  std::vector<std::vector<std::string>> rows = {
      {"RANK", "BUSY", "IDLE", "FIRST START", "LAST END",
       chunks ? "PEAK IN FLIGHT (CHUNKS)" : "PEAK IN FLIGHT"}};
  if (chunks) rows[0].push_back("(STAGES)");
  for (int i = 0; i < response.ranks_size(); ++i) {
    const v1::SimulatedRank& rank = response.ranks(i);
    rows.push_back({absl::StrCat(i), absl::StrCat(rank.busy()),
                    absl::StrCat(rank.idle()), absl::StrCat(rank.first_start()),
                    absl::StrCat(rank.last_end()),
                    absl::StrCat(rank.peak_in_flight())});
    if (chunks) rows.back().push_back(absl::StrCat(rank.peak_activations()));
  }
  return FormatTable(rows);
}

std::string EdgeTable(const v1::SimulateScheduleResponse& response) {
  if (response.edges().empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"EDGE", "FROM RANK", "TO RANK", "CAPACITY"}};
  for (const v1::SimulatedEdge& edge : response.edges()) {
    rows.push_back({absl::StrCat(edge.edge().source_stage(), "->",
                                 edge.edge().target_stage()),
                    absl::StrCat(edge.from()), absl::StrCat(edge.to()),
                    absl::StrCat(edge.capacity())});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

std::string SavingTable(const v1::SimulateScheduleResponse& response) {
  if (response.savings().empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"CRITICAL PATH", "COUNT", "TIME", "SHARE", "1 % FASTER SAVES"}};
  const int shown = std::min(response.savings_size(), kShownSavings);
  for (int i = 0; i < shown; ++i) {
    const v1::CriticalSaving& saving = response.savings(i);
    rows.push_back(
        {saving.what(), absl::StrCat(saving.count()),
         absl::StrCat(saving.on_path()), Percent(saving.share()),
         saving.has_saved()
             ? absl::StrFormat("%.4g (%.3f %%)", saving.saved(),
                               100 * saving.saved() / response.makespan())
             : "not computed"});
  }
  std::string out = absl::StrCat("\n", FormatTable(rows));
  if (shown < response.savings_size()) {
    absl::StrAppend(&out, "and ", response.savings_size() - shown,
                    " more parts; -o json has them all\n");
  }
  return out;
}

ordered_json SavingEntry(const v1::CriticalSaving& saving) {
  return {{"what", saving.what()},
          {"count", saving.count()},
          {"on_path", saving.on_path()},
          {"share", saving.share()},
          {"saved", saving.has_saved() ? ordered_json(saving.saved())
                                       : ordered_json(nullptr)}};
}

}  // namespace

std::string SimulationTable(const v1::SimulateScheduleResponse& response) {
  std::string out = absl::StrFormat(
      "makespan %g  bubble rate %s  span bubble %s\n", response.makespan(),
      Percent(response.bubble_rate()), Percent(response.span_bubble_rate()));
  absl::StrAppend(&out, response.placement(),
                  " placement, chunks a rank: ", response.chunks());
  if (!response.found().empty()) {
    absl::StrAppend(&out, "; auto found this order: ", response.found());
  }
  absl::StrAppend(&out, "\n");
  if (response.has_closed_form()) {
    absl::StrAppendFormat(
        &out,
        "textbook bubble rate %s = %s (equal stages, F = I = W, transfers that "
        "take no time)\n",
        response.closed_form().formula(),
        Percent(response.closed_form().bubble_rate()));
  }
  absl::StrAppend(&out, "\n", RankTable(response), EdgeTable(response),
                  SavingTable(response));
  return out;
}

std::string SimulationJson(const v1::SimulateScheduleResponse& response) {
  ordered_json json = {
      {"makespan", response.makespan()},
      {"bubble_rate", response.bubble_rate()},
      {"span_bubble_rate", response.span_bubble_rate()},
      {"closed_form",
       response.has_closed_form()
           ? ordered_json{{"formula", response.closed_form().formula()},
                          {"bubble_rate", response.closed_form().bubble_rate()}}
           : ordered_json(nullptr)},
      {"chunks", response.chunks()},
      {"placement", response.placement()},
      {"found", response.found().empty() ? ordered_json(nullptr)
                                         : ordered_json(response.found())},
      {"ranks", ordered_json::array()},
      {"edges", ordered_json::array()},
      {"critical_path",
       std::vector<std::string>(response.critical_path().begin(),
                                response.critical_path().end())},
      {"savings", ordered_json::array()}};
  for (const v1::SimulatedRank& rank : response.ranks()) {
    json["ranks"].push_back({{"busy", rank.busy()},
                             {"idle", rank.idle()},
                             {"first_start", rank.first_start()},
                             {"last_end", rank.last_end()},
                             {"peak_in_flight", rank.peak_in_flight()},
                             {"peak_activations", rank.peak_activations()}});
  }
  for (const v1::SimulatedEdge& edge : response.edges()) {
    json["edges"].push_back({{"from", edge.from()},
                             {"to", edge.to()},
                             {"capacity", edge.capacity()},
                             {"source_stage", edge.edge().source_stage()},
                             {"target_stage", edge.edge().target_stage()}});
  }
  for (const v1::CriticalSaving& saving : response.savings()) {
    json["savings"].push_back(SavingEntry(saving));
  }
  // Names of files are whatever bytes they are.
  return absl::StrCat(
      json.dump(2, ' ', false, ordered_json::error_handler_t::replace), "\n");
}

std::string SimulationSvg(const v1::SimulateScheduleRequest& request,
                          const v1::SimulateScheduleResponse& response) {
  std::vector<report::HeatmapBox> boxes;
  double held = 0;
  for (int rank = 0; rank < response.ranks_size(); ++rank) {
    held = std::max(held, response.ranks(rank).peak_activations());
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
  const std::string chunks =
      response.chunks() > 1 ? absl::StrCat(", v = ", response.chunks()) : "";
  const std::string found =
      response.found().empty() ? "" : absl::StrCat(" (", response.found(), ")");
  return report::HeatmapSvg(
      std::move(boxes),
      {.title =
           absl::StrFormat("%s%s, K = %d%s, M = %d", request.schedule(), found,
                           request.stages(), chunks, request.micro_batches()),
       .subtitle = absl::StrFormat(
           "makespan %g, bubble rate %s, span bubble %s; most activations "
           "held, in stages': %.4g",
           response.makespan(), Percent(response.bubble_rate()),
           Percent(response.span_bubble_rate()), held),
       .unit = report::HeatmapOptions::Unit::kAbstract,
       .frame = report::HeatmapOptions::Frame::kFile});
}

}  // namespace penstock::client::commands
