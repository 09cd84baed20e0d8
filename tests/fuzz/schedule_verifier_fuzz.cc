// Any bytes as a schedule, costs and limits: of any placement, size and numbers
// (the first bit 0), or a shipped one with some of its commands changed (1).
// The verifier must answer, and accept exactly what the rules said once more
// accept (order_rules.h). What it accepts is simulated and played out with real
// slots (rule_oracle.h).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "coordinator/schedule/generators.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/schedule/simulator.h"
#include "coordinator/schedule/verifier.h"
#include "tests/coordinator/schedule/order_rules.h"
#include "tests/coordinator/schedule/rule_oracle.h"

namespace penstock::coordinator::schedule {
namespace {

// Takes numbers off the front; 0 at the end.
class Bytes {
 public:
  explicit Bytes(absl::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  int Next() {
    if (bytes_.empty()) return 0;
    const int byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  int Below(int count) { return Next() % count; }
  bool Chance() { return Below(2) == 1; }
  // Mostly a number of the range, now and then one that is not.
  int About(int least, int count) {
    constexpr int kOdd[] = {-1,
                            0,
                            4096,
                            4097,
                            1 << 20,
                            (1 << 20) + 1,
                            std::numeric_limits<int>::max(),
                            std::numeric_limits<int>::min()};
    const int byte = Next();
    if (byte >= 248) return kOdd[byte - 248];
    return least + byte % count;
  }
  int64_t Size() {
    const int byte = Next();
    if (byte == 255) return -1;
    if (byte == 254) return kMaxBytes;
    return byte % 8;
  }

 private:
  absl::string_view bytes_;
};

Command CommandFrom(Bytes* bytes, int stages, int micro_batches) {
  constexpr Op kOps[] = {Op::kForward, Op::kBackward, Op::kBackwardInput,
                         Op::kBackwardWeight};
  const int op = bytes->Next();
  return {op == 255 ? static_cast<Op>(0) : kOps[op % 4],
          bytes->About(0, std::max(1, stages)),
          bytes->About(0, std::max(1, micro_batches))};
}

Schedule AnySchedule(Bytes* bytes) {
  Schedule schedule{.name = "fuzz",
                    .placement = {.ranks = bytes->About(1, 4)},
                    .micro_batches = bytes->About(1, 5),
                    .orders = {}};
  schedule.placement.rank_of_stage.clear();
  const int ranks = std::clamp(schedule.placement.ranks, 1, 4);
  const int micro_batches = std::clamp(schedule.micro_batches, 1, 5);
  const int stages = bytes->Below(9);
  for (int s = 0; s < stages; ++s) {
    schedule.placement.rank_of_stage.push_back(bytes->About(0, ranks));
  }
  schedule.orders.resize(bytes->Chance() ? ranks : bytes->Below(6));
  while (!bytes->empty() && !schedule.orders.empty()) {
    const int rank = bytes->Below(static_cast<int>(schedule.orders.size()));
    schedule.orders[rank].push_back(CommandFrom(bytes, stages, micro_batches));
  }
  return schedule;
}

// A shipped schedule, or nothing where it has no meaning at that shape, or is
// searched for (`auto`), which is no work for a fuzzer.
std::optional<Schedule> ShippedSchedule(Bytes* bytes) {
  const std::vector<absl::string_view> names = GeneratorNames();
  const NamedSchedule& row =
      *FindSchedule(names[bytes->Below(static_cast<int>(names.size()))]);
  if (row.value == ScheduleKind::kAuto) return std::nullopt;
  const int chunks = 1 + bytes->Below(3);
  const absl::StatusOr<Schedule> schedule =
      Generate(row.name, {.ranks = 1 + bytes->Below(4),
                          .chunks = row.fixed_chunks.value_or(chunks),
                          .micro_batches = 1 + bytes->Below(9)});
  if (!schedule.ok()) return std::nullopt;
  return *schedule;
}

// One change of one row. Swaps of neighbours are what is often still correct.
void Change(Bytes* bytes, Schedule* schedule) {
  std::vector<Command>& row = schedule->orders[bytes->Below(schedule->ranks())];
  if (row.empty()) return;
  const int size = static_cast<int>(row.size());
  const int at = bytes->Below(size);
  switch (bytes->Below(6)) {
    case 0:
      row.erase(row.begin() + at);
      break;
    case 1:
      row.insert(row.begin() + at, row[bytes->Below(size)]);
      break;
    case 2:
      row[at] = CommandFrom(bytes, schedule->stages(), schedule->micro_batches);
      break;
    case 3:
      std::swap(row[at], row[bytes->Below(size)]);
      break;
    default:
      if (at + 1 < size) std::swap(row[at], row[at + 1]);
  }
}

// Eighths, so that sums are exact; lowering takes commands to last a moment.
double Time(Bytes* bytes) { return (1 + bytes->Below(16)) / 8.0; }

LoweringOptions OptionsFrom(Bytes* bytes, const Schedule& schedule) {
  LoweringOptions options{.tied_embedding = bytes->Chance(),
                          .reduce_replicas = bytes->Chance()};
  if (bytes->Below(4) == 0) options.send_buffers = bytes->About(-1, 5);
  if (bytes->Below(4) == 0) options.uniform_slots = bytes->About(-1, 5);
  const int stages =
      bytes->Below(16) == 0 ? bytes->Below(9) : schedule.stages();
  for (int s = 0; s < stages; ++s) {
    options.costs.stages.push_back({.forward = Time(bytes),
                                    .backward_input = Time(bytes),
                                    .backward_weight = Time(bytes)});
    options.memory.stages.push_back({.held_until_input = bytes->Size(),
                                     .held_until_weight = bytes->Size()});
  }
  options.costs.latency = bytes->Chance() ? Time(bytes) : 0;
  options.costs.seconds_per_byte = bytes->Chance() ? 0.125 : 0;
  options.costs.bytes = {.activation = bytes->Below(4),
                         .gradient = bytes->Below(4),
                         .tied = bytes->Below(4)};
  options.memory.slot = {.activation = bytes->Size(),
                         .gradient = bytes->Size(),
                         .tied = bytes->Size()};
  if (bytes->Chance()) {
    const int ranks = bytes->Below(16) == 0
                          ? bytes->Below(9)
                          : std::clamp(schedule.ranks(), 0, 8);
    for (int r = 0; r < ranks; ++r) {
      options.memory.limits.push_back(bytes->Chance() ? bytes->Below(64)
                                                      : kMaxBytes);
    }
  }
  return options;
}

void CheckRefusal(const absl::Status& status) {
  CHECK_LT(status.message().size(), 4096u) << status;
  CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
        status.code() == absl::StatusCode::kResourceExhausted)
      << status;
}

void CheckAccepted(const LoweredProgram& program,
                   const LoweringOptions& options) {
  CHECK_OK(VerifyLowered(program, options.memory));
  Costs costs = options.costs;
  if (costs.stages.empty()) costs.stages.resize(program.stages.size());
  const absl::StatusOr<Simulation> simulation =
      Simulate(program, costs, options.memory);
  CHECK_OK(simulation.status());
  for (const Edge& edge : program.edges) {
    if (edge.send_buffers < 1 || edge.capacity < 1) return;  // Study only.
    if (edge.send_buffers > 64 || edge.capacity > 64) return;
  }
  const OracleResult played = PlayOut(program, costs);
  CHECK_EQ(played.broken, "");
  CHECK(played.finished);
  CHECK_EQ(played.makespan, simulation->makespan);
  for (int r = 0; r < program.ranks() && !options.memory.limits.empty(); ++r) {
    CHECK(simulation->ranks[r].peak_bytes <= options.memory.limits[r]);
  }
}

void VerifyAnything(Bytes bytes) {
  std::optional<Schedule> schedule;
  LoweringOptions options;
  if (bytes.Chance()) {
    schedule = ShippedSchedule(&bytes);
    if (!schedule.has_value()) return;
    options = OptionsFrom(&bytes, *schedule);
    while (!bytes.empty()) Change(&bytes, &*schedule);
  } else {
    Bytes head = bytes;
    schedule = AnySchedule(&bytes);
    options = OptionsFrom(&head, *schedule);
  }
  // Without slots or limits that somebody asks for, the rules say it all.
  const absl::Status plain = Verify(*schedule, {});
  CHECK_EQ(plain.ok(), IsCorrect(*schedule)) << plain;
  if (!plain.ok()) CheckRefusal(plain);

  const absl::StatusOr<LoweredProgram> program =
      LowerVerified(*schedule, options);
  if (!program.ok()) return CheckRefusal(program.status());
  CHECK(plain.ok());
  CheckAccepted(*program, options);
}

}  // namespace
}  // namespace penstock::coordinator::schedule

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::coordinator::schedule::Bytes;           // NOLINT
  using penstock::coordinator::schedule::VerifyAnything;  // NOLINT
  VerifyAnything(
      Bytes(absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
