// JobRun after its last step, kEnding: the stages write the trained model.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/assembly.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/summary.h"

namespace penstock::coordinator::dispatch {

using v1::Job;

void JobRun::SendEnd(const RunContext& context) {
  TellOfRun(skipped_.End(), context);
  phase_ = Phase::kEnding;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.end_deadline;
  ends_.assign(ranks(), std::nullopt);
  for (int rank = 0; rank < ranks(); ++rank) {
    v1::CoordinatorMessage message;
    v1::End& end = *message.mutable_end();
    if (!output_.empty()) {
      end.set_model_directory(
          absl::StrCat(log_.job().run_directory(), "/", output_));
    }
    end.set_shard_file(ShardFile(rank, ranks()));
    if (!Tell(rank, std::move(message), context)) return;
  }
}

absl::Status JobRun::OnEndReport(int rank, const v1::EndReport& report,
                                 const RunContext& context) {
  if (!InPhase(Phase::kEnding) || ends_[rank].has_value()) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckMemory(report.peak_memory()));
  ends_[rank] = report;
  moved_ = context.now.monotonic;
  // Once more: a step that allocated shows only now.
  if (report.has_peak_memory() &&
      TotalBytes(report.peak_memory()) != TotalBytes(ready_[rank]->memory())) {
    CompareMemory(rank, report.peak_memory(), context);
  }
  if (std::all_of(ends_.begin(), ends_.end(),
                  [](const auto& entry) { return entry.has_value(); })) {
    CompleteModel(context);
  }
  return absl::OkStatus();
}

void JobRun::CompleteModel(const RunContext& context) {
  std::vector<v1::EndReport> ends;
  int64_t digests = 0, elements = 0;
  for (const auto& end : ends_) {
    digests += end->digests_size();
    ends.push_back(*end);
  }
  int64_t owned = 0;
  for (const auto& ready : ready_) {
    for (const v1::ParameterInfo& parameter : ready->parameters()) {
      if (!parameter.owned()) continue;
      ++owned;
      elements += parameter.elements();
    }
  }
  if (digests != owned) {
    FailWith(
        absl::InternalError(absl::StrCat("the stages wrote digests of ",
                                         digests, " parameters of ", owned)),
        context);
    return;
  }
  if (output_.empty()) {
    Succeed(context);
    return;
  }
  if (ranks() > 1) {
    log_.Write(absl::StrCat(output_, "/model.safetensors.index.json"),
               ShardIndex(ends, elements * static_cast<int64_t>(sizeof(float))),
               WriteJobFile::Mode::kReplace, context.actions);
  }
  PublishOutput(context);
}

void JobRun::Succeed(const RunContext& context) {
  AbortStages(v1::Cause(), context);  // Released: nothing went wrong.
  Finish({.state = Job::STATE_SUCCEEDED}, context);
}

}  // namespace penstock::coordinator::dispatch
