// The barrier of one job's steps: collects StepReports and ApplyAcks of all
// ranks and says when a step is released and when it is applied.
//
//   (1)              (2)                  (3)
//   reports of n  ->  ReleaseStep(n)  ->  acks of n  ->  n is applied
//
//   1 from every rank, each once; a report of n also says that its rank has
//     applied n - 1
//   2 only when n - 1 is applied everywhere
//   3 from every rank, each once; then n + 1 may be released
//
// Steps count from 1; step n makes V[n]. A rank is at most one step ahead of
// another, so only the reports of the step after the newest applied one can
// come, or of the one after it while acks are on their way. Anything else is a
// fault of the sender.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_STEP_BARRIER_H_
#define PENSTOCK_COORDINATOR_DISPATCH_STEP_BARRIER_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/spec/job_spec.h"
#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// What a step came to. Losses are sums in nats, norms of the mean over tokens.
struct StepResult {
  int64_t step = 0;
  v1::ReleaseStep release;
  double loss_sum = 0;
  int64_t valid_tokens = 0;
  // NaN without a valid token.
  double grad_norm = std::numeric_limits<double>::quiet_NaN();
  double learning_rate = 0;  // In f64, as computed.
  // Not finite: which rank and tensor (or "loss of micro-batch 3"), for the
  // first in canonical order. Empty: all finite.
  int nonfinite_rank = -1;
  std::string nonfinite;

  bool skipped() const {
    return release.decision() == v1::ReleaseStep::DECISION_SKIP;
  }
};

struct BarrierOptions {
  int ranks = 1;
  int head_rank = 0;  // The only one that reports losses.
  int micro_batches = 1;
  int stages = 1;                  // Virtual ones, of all ranks.
  int64_t micro_batch_tokens = 0;  // Labels of a micro-batch, valid or not.
  int64_t parameters = 0;          // Canonical indices are 0 .. parameters - 1.
  int64_t steps = 0;               // Of the job: where decay ends by default.
  spec::OptimizerSpec optimizer;
  spec::LrSchedule lr_schedule;
};

// Thread-compatible.
class StepBarrier {
 public:
  explicit StepBarrier(const BarrierOptions& options);

  // After either the caller looks at applied() and Release(). A duplicate does
  // nothing; a report also counts as the ack of the step before it.
  // InvalidArgument: a report or ack that cannot be (step, losses, operations
  // that the plan has not, times that no step takes): a fault of the stage, and
  // the end of the job. What is taken in can be added up.
  absl::Status AddReport(int rank, const v1::StepReport& report);
  absl::Status AddAck(int rank, int64_t step);

  // The release of step applied() + 1, once: when all its reports are in.
  // InvalidArgument: the sums of squares do not cover the parameters.
  absl::StatusOr<std::optional<StepResult>> Release();

  // Newest step that every rank has applied.
  int64_t applied() const { return applied_; }
  // The step that waits for acks, or 0.
  int64_t released() const { return released_ ? applied_ + 1 : 0; }
  // Reports and acks that were taken in; duplicates do not count.
  int64_t accepted() const { return accepted_; }
  // Ranks that the barrier waits for: for their reports, or for their acks.
  std::vector<int> Missing() const;

 private:
  absl::Status CheckReport(int rank, const v1::StepReport& report) const;
  // Their errors go on after "the report ... ".
  absl::Status CheckTimes(const v1::StepReport& report) const;
  absl::Status CheckLosses(int rank, const v1::StepReport& report) const;
  // Losses of a complete step, then sums of squares and what is not finite.
  void AddLosses(StepResult& result) const;
  absl::StatusOr<std::vector<double>> CollectSums(StepResult& result) const;

  const BarrierOptions options_;
  int64_t applied_ = 0;
  int64_t accepted_ = 0;
  int64_t adam_t_ = 0;  // Updates made so far (SKIP makes none).
  bool released_ = false;
  std::vector<std::optional<v1::StepReport>> reports_;  // Of applied_ + 1.
  // Of applied_ + 2: from ranks that are ahead of another's ack.
  std::vector<std::optional<v1::StepReport>> early_;
  std::vector<bool> acks_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_STEP_BARRIER_H_
