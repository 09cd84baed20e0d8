// Every cell: case, micro-batch size, K, schedule, on `reference` and `cpu`.
// Minutes; the sample of it is in parity_sample.cc.
#include "tests/server/executor/parity_cell.h"
#include "tests/server/model/parity_case.h"

namespace penstock::testing {

std::vector<ParityCell> ParityCells() {
  std::vector<ParityCell> cells;
  for (const ParityListing& listing : ParityListings()) {
    for (const char* device : {"cpu", "reference"}) {
      for (const int ranks : kParityRanks) {
        for (const char* schedule : kParitySchedules) {
          for (const int64_t size : listing.micro_batch_sizes) {
            cells.push_back({.name = listing.name,
                             .device = device,
                             .ranks = ranks,
                             .schedule = schedule,
                             .micro_batch = size,
                             .wire = cells.size() % 2 == 0 ? Wire::kInProcess
                                                           : Wire::kTcp});
          }
        }
      }
    }
  }
  return cells;
}

}  // namespace penstock::testing
