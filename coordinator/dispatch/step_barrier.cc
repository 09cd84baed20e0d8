#include "coordinator/dispatch/step_barrier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/ids/op_letter.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/barrier_math.h"

namespace penstock::coordinator::dispatch {
namespace {

// Of a step and of what is in it: six days.
constexpr int64_t kLongestNs = int64_t{1} << 49;

}  // namespace

StepBarrier::StepBarrier(const BarrierOptions& options)
    : options_(options),
      reports_(options.ranks),
      early_(options.ranks),
      acks_(options.ranks, false) {}

absl::Status StepBarrier::CheckTimes(const v1::StepReport& report) const {
  for (const int64_t ns : {report.busy_ns(), report.span_ns()}) {
    if (ns < 0 || ns > kLongestNs) {
      return absl::InvalidArgumentError(
          absl::StrCat("has a time of ", ns, " ns"));
    }
  }
  for (const v1::OpTiming& timing : report.timings()) {
    if (!v1::Op_IsValid(timing.op()) || timing.op() == v1::OP_UNSPECIFIED ||
        timing.stage() < 0 || timing.stage() >= options_.stages ||
        timing.micro_batch() < 0 ||
        timing.micro_batch() >= options_.micro_batches) {
      return absl::InvalidArgumentError(
          absl::StrCat("has an operation that the plan has not: ",
                       common::ids::OpLetter(timing.op()), " of stage ",
                       timing.stage(), ", micro-batch ", timing.micro_batch()));
    }
    if (timing.start_ns() < 0 || timing.end_ns() < timing.start_ns() ||
        timing.end_ns() > kLongestNs) {
      return absl::InvalidArgumentError(absl::StrCat("has an operation from ",
                                                     timing.start_ns(), " to ",
                                                     timing.end_ns(), " ns"));
    }
  }
  return absl::OkStatus();
}

absl::Status StepBarrier::CheckLosses(int rank,
                                      const v1::StepReport& report) const {
  const auto bad = [](const std::string& what) {
    return absl::InvalidArgumentError(what);
  };
  if (rank != options_.head_rank) {
    if (report.losses_size() > 0) return bad("has losses but not the head");
    return absl::OkStatus();
  }
  if (report.losses_size() != options_.micro_batches) {
    return bad(absl::StrCat("has ", report.losses_size(), " losses for ",
                            options_.micro_batches, " micro-batches"));
  }
  std::vector<bool> seen(options_.micro_batches, false);
  for (const v1::MicroBatchLoss& loss : report.losses()) {
    const int m = loss.micro_batch();
    if (m < 0 || m >= options_.micro_batches || seen[m]) {
      return bad(absl::StrCat("names micro-batch ", m,
                              ", which is out of range or there twice"));
    }
    if (loss.valid_tokens() < 0 ||
        loss.valid_tokens() > options_.micro_batch_tokens) {
      return bad(absl::StrCat("counts ", loss.valid_tokens(),
                              " valid tokens in micro-batch ", m, ", of ",
                              options_.micro_batch_tokens));
    }
    seen[m] = true;
  }
  return absl::OkStatus();
}

absl::Status StepBarrier::CheckReport(int rank,
                                      const v1::StepReport& report) const {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the report of step ", report.step(), " from rank ", rank, " ", what));
  };
  if (report.step() != applied_ + 1 + (released_ ? 1 : 0)) {
    return bad(absl::StrCat("cannot be: step ", applied_ + 1, " is ",
                            released_ ? "released" : "not released"));
  }
  for (const absl::Status& checked :
       {CheckTimes(report), CheckLosses(rank, report)}) {
    if (!checked.ok()) return bad(checked.message());
  }
  return absl::OkStatus();
}

absl::Status StepBarrier::AddReport(int rank, const v1::StepReport& report) {
  if (report.step() > 0 && report.step() <= applied_) {
    return absl::OkStatus();  // After a Hello.
  }
  const bool current = report.step() == applied_ + 1;
  if (current && reports_[rank].has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckReport(rank, report));
  if (!current && early_[rank].has_value()) return absl::OkStatus();
  ++accepted_;
  if (current) {
    reports_[rank] = report;
    return absl::OkStatus();
  }
  early_[rank] = report;
  return AddAck(rank, report.step() - 1);
}

void StepBarrier::AddLosses(StepResult& result) const {
  // Losses in the order of micro-batches.
  std::vector<const v1::MicroBatchLoss*> losses(options_.micro_batches);
  for (const auto& loss : reports_[options_.head_rank]->losses()) {
    losses[loss.micro_batch()] = &loss;
  }
  for (const v1::MicroBatchLoss* loss : losses) {
    result.loss_sum += loss->loss_sum();
    result.valid_tokens += loss->valid_tokens();
    if (result.nonfinite.empty() && !std::isfinite(loss->loss_sum())) {
      result.nonfinite_rank = options_.head_rank;
      result.nonfinite =
          absl::StrCat("the loss of micro-batch ", loss->micro_batch());
    }
  }
}

absl::StatusOr<std::vector<double>> StepBarrier::CollectSums(
    StepResult& result) const {
  // Sums of squares in canonical order, each tensor once.
  std::vector<double> sums(options_.parameters, 0);
  std::vector<int> owner(options_.parameters, -1);
  for (int rank = 0; rank < options_.ranks; ++rank) {
    for (const v1::TensorSum& sum : reports_[rank]->sums()) {
      const int64_t index = sum.canonical_index();
      if (index < 0 || index >= options_.parameters || owner[index] >= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", rank, " reports parameter ", index, " of ",
            options_.parameters,
            index >= 0 && index < options_.parameters
                ? absl::StrCat(", which rank ", owner[index], " did already")
                : ""));
      }
      owner[index] = rank;
      sums[index] = sum.sum_squares();
    }
  }
  const auto missing = std::find(owner.begin(), owner.end(), -1);
  if (missing != owner.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no rank reports parameter ", missing - owner.begin(),
                     " of ", options_.parameters, " in step ", result.step));
  }
  // A gradient that is not finite says more than the loss that it came from.
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (!reports_[rank]->nonfinite().empty()) {
      result.nonfinite_rank = rank;
      result.nonfinite =
          absl::StrCat("the gradient of ", reports_[rank]->nonfinite());
      break;
    }
  }
  for (int64_t i = 0; i < options_.parameters && result.nonfinite.empty();
       ++i) {
    if (!std::isfinite(sums[i])) {
      result.nonfinite_rank = owner[i];
      result.nonfinite = absl::StrCat("the gradient of parameter ", i);
    }
  }
  return sums;
}

absl::StatusOr<std::optional<StepResult>> StepBarrier::Release() {
  if (released_) return std::optional<StepResult>();
  for (const auto& report : reports_) {
    if (!report.has_value()) return std::optional<StepResult>();
  }
  StepResult result;
  result.step = applied_ + 1;

  AddLosses(result);
  ASSIGN_OR_RETURN(const std::vector<double> sums, CollectSums(result));
  if (result.valid_tokens > 0) {
    result.grad_norm = GradientNorm(sums, result.valid_tokens);
    // Finite sums may still overflow together.
    if (result.nonfinite.empty() && !std::isfinite(result.grad_norm)) {
      result.nonfinite_rank = options_.head_rank;
      result.nonfinite = "the norm of all gradients";
    }
  }

  const spec::OptimizerSpec& optimizer = options_.optimizer;
  result.learning_rate = LearningRate(options_.lr_schedule, optimizer.lr,
                                      options_.steps, result.step - 1);
  v1::ReleaseStep& release = result.release;
  release.set_step(result.step);
  const bool apply = result.valid_tokens > 0 && result.nonfinite.empty();
  release.set_decision(apply ? v1::ReleaseStep::DECISION_APPLY
                             : v1::ReleaseStep::DECISION_SKIP);
  if (apply) ++adam_t_;
  const double scale =
      apply ? GradientScale(result.grad_norm, optimizer.clip_norm,
                            result.valid_tokens)
            : 0;
  release.set_grad_scale(static_cast<float>(scale));
  release.set_learning_rate(static_cast<float>(result.learning_rate));
  release.set_bias_correction1(
      static_cast<float>(BiasCorrection(optimizer.beta1, adam_t_)));
  release.set_bias_correction2(
      static_cast<float>(BiasCorrection(optimizer.beta2, adam_t_)));
  release.set_adam_t(adam_t_);
  released_ = true;
  return std::optional<StepResult>(std::move(result));
}

absl::Status StepBarrier::AddAck(int rank, int64_t step) {
  if (step > 0 && step <= applied_) return absl::OkStatus();
  if (!released_ || step != applied_ + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " has applied step ", step, ", which was not released"));
  }
  if (acks_[rank]) return absl::OkStatus();
  acks_[rank] = true;
  ++accepted_;
  if (std::count(acks_.begin(), acks_.end(), true) == options_.ranks) {
    ++applied_;
    released_ = false;
    acks_.assign(options_.ranks, false);
    reports_ = std::move(early_);
    early_.assign(options_.ranks, std::nullopt);
  }
  return absl::OkStatus();
}

std::vector<int> StepBarrier::Missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (released_ ? !acks_[rank] : !reports_[rank].has_value()) {
      missing.push_back(rank);
    }
  }
  return missing;
}

}  // namespace penstock::coordinator::dispatch
