// What `penstock simulate` prints of an answer: for people, for scripts, and
// as a picture. Pure.
#ifndef PENSTOCK_CLIENT_COMMANDS_SIMULATION_OUTPUT_H_
#define PENSTOCK_CLIENT_COMMANDS_SIMULATION_OUTPUT_H_

#include <string>

#include "penstock/v1/plan_service.pb.h"

namespace penstock::client::commands {

// Both bubbles by name, the textbook's where it has one, then tables of ranks,
// edges, and what on the critical path is worth making faster. REQUIRES: an
// answer of DETAIL_SUMMARY.
std::string SimulationTable(const v1::SimulateScheduleResponse& response);

// One object with the keys of docs/schedules.md, pretty-printed. REQUIRES: an
// answer of DETAIL_SUMMARY.
std::string SimulationJson(const v1::SimulateScheduleResponse& response);

// A file of its own: the heatmap of client/report. `request` is what was asked.
// REQUIRES: an answer of DETAIL_COMMANDS.
std::string SimulationSvg(const v1::SimulateScheduleRequest& request,
                          const v1::SimulateScheduleResponse& response);

}  // namespace penstock::client::commands

#endif  // PENSTOCK_CLIENT_COMMANDS_SIMULATION_OUTPUT_H_
