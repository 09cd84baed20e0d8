#include "coordinator/dispatch/deadlines.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::coordinator::dispatch {
namespace {

constexpr double kStallOverCommand = 1.5;
constexpr double kStallOverStep = 4;

// Operations (planner/costs.h) a second that all ranks together surely do;
// nullopt where the constant is always long enough. Of `virtual` they are
// seconds: it is twice as slow where its threads wait for a core.
//
// From measurements of one thread (docs/benchmarks.md, 2026-11-29 and 30, a Zen
// 4 core with AVX-512, busy): `cpu` did 2754 and 682 tokens/s of models a and
// b, whose tokens take 33.5e6 and 144e6 operations, so 92e9 and 98e9 a second;
// `reference` 1.7e9. The floors lie 92 and 85 times below that. The distance is
// for SSE4 (a quarter of the lanes, no fused multiply-add), for older cores,
// and for ranks that share one core with each other and with other programs.
std::optional<double> LowestSpeed(const std::string& device_kind) {
  if (device_kind == "cpu") return 1e9;
  if (device_kind == "reference") return 2e7;
  if (device_kind == "virtual") return 0.5;
  return std::nullopt;
}

}  // namespace

absl::Status CheckDeadlines(const Options& options) {
  const registry::Options& leases = options.registry;
  for (const auto& [name, value] :
       {std::pair<const char*, absl::Duration>{"lease", leases.lease},
        {"heartbeat", leases.heartbeat},
        {"check_inputs_deadline", options.check_inputs_deadline},
        {"planning_deadline", options.planning_deadline},
        {"assembly_deadline", options.assembly_deadline},
        {"assembly_stall_deadline", options.assembly_stall_deadline},
        {"command_deadline", options.command_deadline},
        {"stall_deadline", options.stall_deadline},
        {"end_deadline", options.end_deadline},
        {"results_deadline", options.results_deadline},
        {"cause_window", options.cause_window},
        {"abort_deadline", options.abort_deadline},
        {"cancel_deadline", options.cancel_deadline},
        {"queue_deadline", options.queue_deadline},
        {"waiting_notice", options.waiting_notice}}) {
    if (value > absl::ZeroDuration()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is ", absl::FormatDuration(value), ", it must be above 0"));
  }
  if (leases.lease < 5 * leases.heartbeat) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease ", absl::FormatDuration(leases.lease),
                     " is shorter than five heartbeats of ",
                     absl::FormatDuration(leases.heartbeat)));
  }
  if (options.command_deadline >= options.stall_deadline) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command_deadline ", absl::FormatDuration(options.command_deadline),
        " is not below stall_deadline ",
        absl::FormatDuration(options.stall_deadline)));
  }
  if (options.assembly_stall_deadline > options.assembly_deadline) {
    return absl::InvalidArgumentError(
        absl::StrCat("assembly_stall_deadline ",
                     absl::FormatDuration(options.assembly_stall_deadline),
                     " is longer than assembly_deadline ",
                     absl::FormatDuration(options.assembly_deadline)));
  }
  return absl::OkStatus();
}

absl::Duration CommandDeadline(const Options& options,
                               const planner::Plan& plan,
                               const std::string& device_kind,
                               int evaluation_micro_batches) {
  const std::optional<double> speed = LowestSpeed(device_kind);
  if (!speed.has_value()) return options.command_deadline;
  const schedule::Costs& costs = plan.costs;
  // Where transfers take time: there and back, and a tied embedding's two.
  const auto transfer = [&costs](int64_t bytes) {
    return costs.latency + costs.seconds_per_byte * static_cast<double>(bytes);
  };
  double operations = 2 * transfer(costs.bytes.tied);
  for (const schedule::StageTimes& stage : costs.stages) {
    const double forward = stage.forward + transfer(costs.bytes.activation);
    const double backward =
        std::max(stage.of(schedule::Op::kBackward),
                 stage.backward_input + stage.backward_weight) +
        transfer(costs.bytes.gradient);
    operations += plan.program.micro_batches * (forward + backward) +
                  evaluation_micro_batches * forward;
  }
  return std::max(
      options.command_deadline,
      absl::Ceil(absl::Seconds(operations / *speed), absl::Seconds(1)));
}

absl::Duration StallDeadline(const Options& options,
                             absl::Duration command_deadline,
                             absl::Duration slowest_step) {
  return std::max({options.stall_deadline, kStallOverCommand * command_deadline,
                   kStallOverStep * slowest_step});
}

}  // namespace penstock::coordinator::dispatch
