// The cells that CI trains: every case at every K with every schedule on `cpu`,
// micro-batch sizes, recompute and wire changing from cell to cell, and each
// case once on `reference`.
#include "tests/server/executor/parity_cell.h"
#include "tests/server/model/parity_case.h"

namespace penstock::testing {

std::vector<ParityCell> ParityCells() {
  std::vector<ParityCell> cells;
  int number = 0;  // Of the case: another start for each.
  for (const ParityListing& listing : ParityListings()) {
    const std::vector<int64_t>& sizes = listing.micro_batch_sizes;
    for (int i = 0; i < 12; ++i) {
      cells.push_back({.name = listing.name,
                       .device = i % 2 == 0 ? "cpu" : "cpu2",
                       .ranks = kParityRanks[i / 3],
                       .schedule = kParitySchedules[i % 3],
                       .micro_batch = sizes[(i + number) % sizes.size()],
                       .full_recompute = (i / 3 + number) % 2 == 1,
                       .wire = (i / 4 + i + number) % 2 == 0
                                   ? Wire::kTcp
                                   : Wire::kInProcess});
    }
    cells.push_back({.name = listing.name,
                     .device = "reference",
                     .ranks = kParityRanks[(number + 1) % 4],
                     .schedule = kParitySchedules[(number + 2) % 3],
                     .micro_batch = sizes[number % sizes.size()],
                     .wire = Wire::kTcp});
    ++number;
  }
  return cells;
}

}  // namespace penstock::testing
