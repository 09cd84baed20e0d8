// A schedule's grid with one place marked, for error messages.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_GRID_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_GRID_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

// A command's place: which rank, and its index in that rank's order. The index
// may be the order's length: the place after the last command.
struct Place {
  int rank = 0;
  int position = 0;
};

// Rows are ranks, columns positions; the place is written >0F3<. Prints the
// whole grid where it is small, else the neighbourhood: at most 2 KiB.
std::string MarkedGrid(const Schedule& schedule, Place place);

// "rank 1, position 4 (0F3)"; "rank 1, end of its row".
std::string Describe(const Schedule& schedule, Place place);

// InvalidArgument: "NAME: PLACE: WHAT", then the marked grid.
absl::Status Violation(const Schedule& schedule, Place place,
                       absl::string_view what);

// "cycle:" and one clause a line, each saying who waits for whom and the last
// for the first; long cycles are shortened in the middle.
std::string JoinCycle(const std::vector<std::string>& clauses);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_GRID_H_
