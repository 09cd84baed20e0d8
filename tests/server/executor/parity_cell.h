// One cell of the parity grid: a case, cut and run in one of the ways in which
// it must train as torch does.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_CELL_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_CELL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/server/executor/pipeline.h"

namespace penstock::testing {

struct ParityCell {
  std::string name;
  std::string device;  // Of CreateTestDevice.
  int ranks = 1;       // 0: as many as the model has layers, blocks + 2.
  std::string schedule;
  int64_t micro_batch = 1;
  bool full_recompute = false;
  Wire wire = Wire::kInProcess;
};

// The cells of this test program: parity_sample.cc or parity_grid.cc.
std::vector<ParityCell> ParityCells();

inline constexpr int kParityRanks[] = {1, 2, 3, 0};
inline constexpr const char* kParitySchedules[] = {"naive", "gpipe", "1f1b"};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_CELL_H_
