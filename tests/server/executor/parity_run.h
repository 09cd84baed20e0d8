// Trains a parity case through executors, transport and schedule, and says how
// far every figure is from torch.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_RUN_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/executor/micro_batch_source.h"
#include "tests/server/executor/pipeline.h"
#include "tests/server/model/deviations.h"
#include "tests/server/model/parity_case.h"

namespace penstock::testing {

// The case's sequences in file order; borrows the case.
class ParityData final : public server::executor::MicroBatchSource {
 public:
  explicit ParityData(const ParityCase& parity) : parity_(parity) {}
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override;

 private:
  const ParityCase& parity_;
};

// How the case is cut. REQUIRES: `micro_batch` divides its batch.
struct ParityRun {
  int ranks = 1;
  std::string schedule = "1f1b";
  int64_t micro_batch = 1;
  bool full_recompute = false;
  Wire wire = Wire::kInProcess;
  // Empty: the reference device.
  std::function<std::unique_ptr<server::device::Device>(int rank)> device;
};

struct ParityOutcome {
  Deviations deviations;
  std::string weights_sha256;
};

// All steps of the case. Internal: a tensor or a token is missing or too many.
absl::StatusOr<ParityOutcome> TrainParity(const ParityCase& parity,
                                          const ParityRun& run);

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_PARITY_RUN_H_
