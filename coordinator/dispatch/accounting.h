// What a job's steps measured: the numbers of metrics.jsonl, summary.json and
// trace.json. Bounded whatever the number of steps, since StepBarrier takes in
// no operation but the plan's.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_ACCOUNTING_H_
#define PENSTOCK_COORDINATOR_DISPATCH_ACCOUNTING_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/time/clock.h"
#include "coordinator/dispatch/step_alignment.h"
#include "coordinator/dispatch/step_barrier.h"
#include "coordinator/schedule/costs.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::dispatch {

// A released step on its way to being committed.
struct CommittedStep {
  StepResult result;
  std::vector<TimedReport> reports;     // By rank.
  common::time::MonotonicTime started;  // The end of the one before.
  common::time::MonotonicTime committed;
  absl::Time wall;
  std::optional<double> validation_loss;
};

// Ops of one step as they ran, for trace.json.
struct TracedStep {
  int64_t step = 0;
  std::vector<TimedReport> reports;  // By rank.
};

struct RankTotals {
  int64_t busy_ns = 0;
  int64_t peak_activation_bytes = 0;
  int peak_in_flight = 0;
};

// Middle and 90th percentile of what was measured after warm-up.
struct Percentiles {
  double p50 = 0;
  double p90 = 0;
};

// Thread-compatible.
class Accounting {
 public:
  Accounting(int ranks, int64_t batch, int64_t sequences)
      : batch_(batch), sequences_(sequences), totals_(ranks) {}

  // Takes the step in and returns its metrics. Steps come in order. REQUIRES:
  // the reports are such as StepBarrier takes in.
  v1::StepMetrics Commit(const CommittedStep& step);

  int64_t steps() const { return steps_; }
  int64_t tokens() const { return tokens_; }
  double total_seconds() const { return total_seconds_; }
  std::optional<double> final_loss() const { return final_loss_; }
  std::optional<double> validation_loss() const { return validation_loss_; }
  // Nothing before the first step.
  std::optional<Percentiles> step_seconds() const;
  // Median over the steps with full timings after warm-up.
  std::optional<double> bubble_rate() const;
  // Medians of each stage's operations, in seconds; nothing where a stage has
  // none yet. For the realisation.
  std::optional<schedule::Costs> MeasuredCosts(int stages) const;
  const std::vector<RankTotals>& totals() const { return totals_; }
  std::vector<TracedStep> traced() const;

 private:
  void TakeTimings(const CommittedStep& step, double seconds,
                   v1::StepMetrics& metrics);

  const int64_t batch_;      // Sequences a step.
  const int64_t sequences_;  // Of a pass over the data.
  int64_t steps_ = 0;
  int64_t tokens_ = 0;
  double total_seconds_ = 0;
  std::optional<double> final_loss_;
  std::optional<double> validation_loss_;
  std::deque<double> step_seconds_;
  std::deque<double> bubble_rates_;
  // Seconds of recent operations, by (operation, stage).
  std::map<std::pair<v1::Op, int>, std::deque<double>> op_seconds_;
  std::vector<RankTotals> totals_;
  std::deque<TracedStep> first_traced_, last_traced_;
};

// A line of metrics.jsonl, ending in a newline. Values that are not finite are
// null, and named in `nonfinite`.
std::string MetricsLine(const v1::StepMetrics& metrics);

// The median; REQUIRES: not empty.
double Median(std::vector<double> values);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_ACCOUNTING_H_
