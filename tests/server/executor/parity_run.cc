#include "tests/server/executor/parity_run.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "tests/server/executor/assignments.h"

namespace penstock::testing {
namespace {

using server::model::ParameterSpec;

// Compares tensors of all ranks, each with the expected one.
class TensorCheck {
 public:
  TensorCheck(Figure figure, const NamedTensors& expected,
              Deviations& deviations)
      : figure_(figure), expected_(expected), deviations_(deviations) {}

  server::model::ParameterStore::Sink Sink(double scale) {
    return [this, scale](const ParameterSpec& spec,
                         absl::Span<const float> values) {
      return Look(spec, values, scale);
    };
  }
  absl::Status All() const {
    if (seen_.size() == expected_.size()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("only ", seen_.size(), " of ",
                                            expected_.size(), " tensors"));
  }

 private:
  absl::Status Look(const ParameterSpec& spec, absl::Span<const float> values,
                    double scale) {
    const auto wanted = expected_.find(spec.name);
    if (wanted == expected_.end() || !seen_.insert(spec.name).second) {
      return absl::InternalError(
          absl::StrCat(spec.name, " is unknown or has two owners"));
    }
    deviations_.NoteTensor(figure_, values, scale, wanted->second, spec.name);
    return absl::OkStatus();
  }

  const Figure figure_;
  const NamedTensors& expected_;
  Deviations& deviations_;
  std::set<std::string> seen_;
};

// The first step's loss of each micro-batch: a sequence's where it has one.
absl::Status CheckMicroBatches(const ParityCase& parity, int64_t micro_batch,
                               const v1::StepReport& report,
                               Deviations& deviations) {
  const ParityStep& expected = parity.steps[0];
  if (report.losses_size() != parity.sequences_per_step / micro_batch) {
    return absl::InternalError("not one loss for each micro-batch");
  }
  for (int m = 0; m < report.losses_size(); ++m) {
    double sum = 0;
    for (int64_t b = 0; b < micro_batch; ++b) {
      sum += expected.sequence_loss[m * micro_batch + b];
    }
    deviations.NoteNumber(Figure::kSequenceLoss, report.losses(m).loss_sum(),
                          sum, absl::StrCat("micro-batch ", m));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParityData::Read(Split /*split*/, int64_t first,
                              absl::Span<int32_t> ids,
                              absl::Span<int32_t> labels) {
  const int64_t length = parity_.sequence_length;
  const int64_t rows = std::max(ids.size(), labels.size());
  for (int64_t row = 0; row < rows / length; ++row) {
    if (!ids.empty()) {
      std::copy_n(parity_.ids[first + row].begin(), length,
                  ids.begin() + row * length);
    }
    if (!labels.empty()) {
      std::copy_n(parity_.labels[first + row].begin(), length,
                  labels.begin() + row * length);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ParityOutcome> TrainParity(const ParityCase& parity,
                                          const ParityRun& run) {
  const int micro_batches = parity.sequences_per_step / run.micro_batch;
  ASSIGN_OR_RETURN(
      const auto pipeline,
      Pipeline::Create(
          {.program = LowerNamed({.name = run.schedule,
                                  .ranks = run.ranks,
                                  .micro_batches = micro_batches,
                                  .tied = parity.model.tied}),
           .assignment = {.model = parity.model,
                          .micro_batch = run.micro_batch,
                          .sequence_length = parity.sequence_length,
                          .full_recompute = run.full_recompute},
           .learning_rate = parity.learning_rate,
           .weights = parity.Source(),
           .data = [&](int) { return std::make_unique<ParityData>(parity); },
           .device = run.device,
           .wire = run.wire}));
  ParityOutcome outcome;
  Deviations& deviations = outcome.deviations;
  TensorCheck gradients(Figure::kFirstGradient, parity.gradients, deviations);
  absl::Status of_gradients;
  ASSIGN_OR_RETURN(
      const std::vector<Pipeline::Step> steps,
      pipeline->Train(parity.steps.size(), [&](const Pipeline::Step& step) {
        if (pipeline->applied_step() > 0) return;
        of_gradients =
            pipeline->ReadGradients(gradients.Sink(1.0 / step.valid));
      }));
  RETURN_IF_ERROR(of_gradients);
  RETURN_IF_ERROR(gradients.All());
  RETURN_IF_ERROR(CheckMicroBatches(
      parity, run.micro_batch, steps[0].reports[run.ranks - 1], deviations));
  for (size_t i = 0; i < steps.size(); ++i) {
    const ParityStep& expected = parity.steps[i];
    const std::string where = absl::StrCat("step ", i + 1);
    if (steps[i].valid != expected.valid_tokens) {
      return absl::InternalError(absl::StrCat(where, " has ", steps[i].valid,
                                              " valid tokens, not ",
                                              expected.valid_tokens));
    }
    deviations.NoteNumber(i == 0 ? Figure::kFirstLoss : Figure::kLossCurve,
                          steps[i].loss, expected.loss, where);
    deviations.NoteNumber(Figure::kGradNorm, steps[i].grad_norm,
                          expected.grad_norm, where);
  }
  ASSIGN_OR_RETURN(outcome.weights_sha256, pipeline->End());
  TensorCheck weights(Figure::kFinalWeight, parity.weights, deviations);
  RETURN_IF_ERROR(pipeline->ReadWeights(weights.Sink(1)));
  RETURN_IF_ERROR(weights.All());
  return outcome;
}

}  // namespace penstock::testing
