#include "coordinator/dispatch/accounting.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/log/log.h"
#include "common/time/proto_time.h"
#include "coordinator/dispatch/job_log.h"
#include "nlohmann/json.hpp"

namespace penstock::coordinator::dispatch {
namespace {

constexpr size_t kKeptSamples = 65536;   // Of steps; the newest.
constexpr size_t kKeptOpSamples = 1024;  // Of each operation and stage.
constexpr size_t kFirstTraced = 3;
constexpr size_t kLastTraced = 5;
// Steps that are left out of medians: first touches of memory, filling caches.
constexpr int64_t kWarmUpSteps = 2;

void Keep(std::deque<double>& samples, double sample, size_t most) {
  samples.push_back(sample);
  if (samples.size() > most) samples.pop_front();
}

// The value below which `share` of the values are; nearest rank.
double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(
      std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// Seconds of the step's time in which the rank that works longest works. While
// an evaluation is awaited ranks begin the next step: that is not of its time.
double LargestBusy(const CommittedStep& step) {
  const std::vector<common::time::MonotonicTime> starts =
      AlignStarts(step.reports);
  absl::Duration largest = absl::ZeroDuration();
  for (size_t rank = 0; rank < step.reports.size(); ++rank) {
    absl::Duration busy = absl::ZeroDuration();
    for (const v1::OpTiming& timing : step.reports[rank].report.timings()) {
      const auto begin = std::max(
          step.started, starts[rank] + absl::Nanoseconds(timing.start_ns()));
      const auto end = std::min(
          step.committed, starts[rank] + absl::Nanoseconds(timing.end_ns()));
      busy += std::max(absl::ZeroDuration(), end - begin);
    }
    largest = std::max(largest, busy);
  }
  return absl::ToDoubleSeconds(largest);
}

}  // namespace

double Median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

v1::StepMetrics Accounting::Commit(const CommittedStep& step) {
  const StepResult& result = step.result;
  const double seconds = absl::ToDoubleSeconds(step.committed - step.started);
  v1::StepMetrics metrics;
  metrics.set_step(result.step);
  *metrics.mutable_time() = common::time::ToProto(step.wall);
  metrics.set_epoch((result.step - 1) * batch_ / sequences_);
  metrics.set_loss(result.valid_tokens > 0
                       ? result.loss_sum /
                             static_cast<double>(result.valid_tokens)
                       : std::numeric_limits<double>::quiet_NaN());
  metrics.set_tokens(result.valid_tokens);
  metrics.set_learning_rate(result.learning_rate);
  metrics.set_grad_norm(result.grad_norm);
  metrics.set_step_seconds(seconds);
  metrics.set_tokens_per_second(
      seconds > 0 ? static_cast<double>(result.valid_tokens) / seconds : 0);
  metrics.set_skipped(result.skipped());
  if (step.validation_loss.has_value()) {
    metrics.set_validation_loss(*step.validation_loss);
    validation_loss_ = step.validation_loss;
  }

  ++steps_;
  tokens_ += result.valid_tokens;
  total_seconds_ += seconds;
  final_loss_ = metrics.loss();
  Keep(step_seconds_, seconds, kKeptSamples);
  for (size_t rank = 0; rank < step.reports.size(); ++rank) {
    const v1::StepReport& report = step.reports[rank].report;
    RankTotals& totals = totals_[rank];
    // Whatever a rank says, step after step.
    totals.busy_ns += std::min(
        report.busy_ns(), std::numeric_limits<int64_t>::max() - totals.busy_ns);
    totals.peak_activation_bytes =
        std::max(totals.peak_activation_bytes, report.peak_activation_bytes());
    totals.peak_in_flight =
        std::max<int>(totals.peak_in_flight, report.peak_in_flight());
  }
  TakeTimings(step, seconds, metrics);
  return metrics;
}

void Accounting::TakeTimings(const CommittedStep& step, double seconds,
                             v1::StepMetrics& metrics) {
  const bool full = std::all_of(
      step.reports.begin(), step.reports.end(),
      [](const TimedReport& timed) { return timed.report.timings_size() > 0; });
  if (!full) return;
  // Warm-up samples only serve until the first warm ones come.
  if (step.result.step == kWarmUpSteps + 1) {
    bubble_rates_.clear();
    op_seconds_.clear();
  }
  if (seconds > 0) {
    metrics.set_bubble_rate(1 - LargestBusy(step) / seconds);
    Keep(bubble_rates_, metrics.bubble_rate(), kKeptSamples);
  }
  for (const TimedReport& timed : step.reports) {
    for (const v1::OpTiming& timing : timed.report.timings()) {
      Keep(op_seconds_[{timing.op(), timing.stage()}],
           Seconds(timing.end_ns() - timing.start_ns()), kKeptOpSamples);
    }
  }
  TracedStep traced{.step = step.result.step, .reports = step.reports};
  if (first_traced_.size() < kFirstTraced) {
    first_traced_.push_back(std::move(traced));
    return;
  }
  last_traced_.push_back(std::move(traced));
  if (last_traced_.size() > kLastTraced) last_traced_.pop_front();
}

std::optional<Percentiles> Accounting::step_seconds() const {
  if (step_seconds_.empty()) return std::nullopt;
  // All of them are kept while there are few, so the first are the warm-up.
  const bool skip = steps_ > 2 * kWarmUpSteps &&
                    steps_ == static_cast<int64_t>(step_seconds_.size());
  const std::vector<double> warm(
      step_seconds_.begin() + (skip ? kWarmUpSteps : 0), step_seconds_.end());
  return Percentiles{.p50 = Median(warm), .p90 = Percentile(warm, 0.9)};
}

std::optional<double> Accounting::bubble_rate() const {
  if (bubble_rates_.empty()) return std::nullopt;
  return Median({bubble_rates_.begin(), bubble_rates_.end()});
}

std::optional<schedule::Costs> Accounting::MeasuredCosts(int stages) const {
  schedule::Costs costs;
  for (int stage = 0; stage < stages; ++stage) {
    const auto median = [&](v1::Op op) -> std::optional<double> {
      const auto it = op_seconds_.find({op, stage});
      if (it == op_seconds_.end()) return std::nullopt;
      return Median({it->second.begin(), it->second.end()});
    };
    const auto forward = median(v1::OP_FORWARD);
    const auto backward = median(v1::OP_BACKWARD);
    const auto input = median(v1::OP_BACKWARD_INPUT);
    const auto weight = median(v1::OP_BACKWARD_WEIGHT);
    const bool split = input.has_value() && weight.has_value();
    if (!forward.has_value() || (!backward.has_value() && !split)) {
      return std::nullopt;
    }
    costs.stages.push_back({.forward = *forward,
                            .backward_input = input.value_or(0),
                            .backward_weight = weight.value_or(0),
                            .backward = backward});
  }
  return costs;
}

std::vector<TracedStep> Accounting::traced() const {
  std::vector<TracedStep> all(first_traced_.begin(), first_traced_.end());
  all.insert(all.end(), last_traced_.begin(), last_traced_.end());
  return all;
}

std::string MetricsLine(const v1::StepMetrics& metrics) {
  nlohmann::ordered_json line;
  std::vector<std::string> nonfinite;
  const auto number = [&](const char* name, double value) {
    line[name] = value;  // Written as null where it is not finite.
    if (!std::isfinite(value)) nonfinite.push_back(name);
  };
  line["step"] = metrics.step();
  line["time"] = Rfc3339(common::time::FromProto(metrics.time()));
  line["epoch"] = metrics.epoch();
  number("loss", metrics.loss());
  line["tokens"] = metrics.tokens();
  number("lr", metrics.learning_rate());
  number("grad_norm", metrics.grad_norm());
  number("step_seconds", metrics.step_seconds());
  number("tokens_per_second", metrics.tokens_per_second());
  if (metrics.has_bubble_rate()) {
    number("bubble_rate", metrics.bubble_rate());
  } else {
    line["bubble_rate"] = nullptr;
  }
  if (metrics.has_validation_loss()) {
    number("validation_loss", metrics.validation_loss());
  }
  line["skipped"] = metrics.skipped();
  line["nonfinite"] = nonfinite;
  return line.dump() + "\n";
}

}  // namespace penstock::coordinator::dispatch
