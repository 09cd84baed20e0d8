// Any bytes as a schedule file: parsed, verified, and if they are a correct
// schedule printed, read again and simulated. The first byte is the number of
// ranks (1 to 8), the second that of micro-batches (1 to 16), the third chooses
// options.
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/text.h"
#include "coordinator/schedule/verifier.h"

namespace penstock::coordinator::schedule {
namespace {

void ParseAndVerify(absl::string_view input) {
  if (input.size() < 3) return;
  const CsvOptions csv{.ranks = 1 + (input[0] & 7),
                       .micro_batches = 1 + (input[1] & 15),
                       .name = "fuzz"};
  const int choice = static_cast<unsigned char>(input[2]);
  input.remove_prefix(3);
  const absl::StatusOr<Schedule> schedule = ParseCsv(input, csv);
  if (!schedule.ok()) {
    CHECK_LT(schedule.status().message().size(), 4096u);
    return;
  }
  LoweringOptions options{.tied_embedding = (choice & 1) != 0,
                          .reduce_replicas = (choice & 2) != 0,
                          .send_buffers = 1 + ((choice >> 2) & 1)};
  if ((choice & 8) != 0) options.uniform_slots = (choice >> 4) & 3;
  const absl::Status status = Verify(*schedule, options);
  CHECK_LT(status.message().size(), 4096u);
  CHECK(status.code() != absl::StatusCode::kInternal) << status;
  if (!status.ok()) return;

  const absl::StatusOr<Schedule> again = ParseCsv(PrintCsv(*schedule), csv);
  CHECK_OK(again.status());
  CHECK(again->orders == schedule->orders);
  const absl::StatusOr<LoweredProgram> program = Lower(*schedule, options);
  CHECK_OK(program.status());
  const absl::StatusOr<Simulation> simulation =
      Simulate(*program, UniformCosts(schedule->rank_shape(), {}));
  CHECK_OK(simulation.status());
  CHECK(simulation->makespan > 0);
}

}  // namespace
}  // namespace penstock::coordinator::schedule

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::coordinator::schedule::ParseAndVerify(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
