// JobRun and the folder in which the trained model is made: before weights are
// loaded every stage has shown that it writes in the very same folder, and it
// becomes model/ when all of it is there. Of a job that fails before that
// nothing of it stays.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/result_names.h"
#include "common/rpc/cause.h"
#include "common/status/error_details.h"
#include "coordinator/dispatch/job_run.h"
#include "coordinator/dispatch/summary.h"

namespace penstock::coordinator::dispatch {

using Change = ChangeJobFolder::Change;

namespace {

std::string ProbeFile(int rank) { return absl::StrCat("probe-", rank); }

}  // namespace

void JobRun::MakeOutput(const RunContext& context) {
  log_.OpenFolder(context.actions);
  if (log_.job().run_directory().empty()) {
    Assemble(context);
    return;
  }
  phase_ = Phase::kProbing;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.check_inputs_deadline;
  probed_.assign(ranks(), std::nullopt);
  // Whoever looks for results, and other writers of the same folder, tell it
  // from model/ and from those of other attempts.
  output_ = absl::StrCat(common::ids::kUnfinishedModel, context.options.term,
                         "-", context.links.epoch(crew_.members.front().name));
  probe_ = absl::StrCat(absl::Hex(context.options.random(), absl::kZeroPad16),
                        absl::Hex(context.options.random(), absl::kZeroPad16));
  log_.Change({.name = output_, .change = Change::kMake}, context.actions);
}

void JobRun::SendProbes(const RunContext& context) {
  for (int rank = 0; rank < ranks(); ++rank) {
    v1::CoordinatorMessage message;
    v1::ProbeOutput& probe = *message.mutable_probe_output();
    probe.set_directory(absl::StrCat(log_.job().run_directory(), "/", output_));
    probe.set_file(ProbeFile(rank));
    probe.set_contents(probe_);
    if (!Tell(rank, std::move(message), context)) return;
  }
}

void JobRun::OnOutputProbed(int rank, const v1::OutputProbed& probed,
                            const RunContext& context) {
  if (!InPhase(Phase::kProbing) || probed_[rank].has_value()) return;
  probed_[rank] = probed;
  if (probed.has_failure()) {
    const absl::Status failure = common::status::Annotate(
        common::rpc::FromCause(probed.failure()),
        absl::StrCat(crew_.members[rank].name, " on host ",
                     crew_.members[rank].host,
                     " cannot write in the run directory, which must be one "
                     "folder that all hosts share"));
    const v1::Cause cause =
        common::rpc::ToCause(failure, crew_.members[rank].name);
    Fail(ReasonOf(cause), cause, context);
    return;
  }
  ChangeJobFolder confirm{.name = output_, .change = Change::kConfirm};
  for (int r = 0; r < ranks(); ++r) {
    if (!probed_[r].has_value()) return;
    confirm.expected.push_back({.name = ProbeFile(r),
                                .contents = probe_,
                                .stage_name = crew_.members[r].name,
                                .host = crew_.members[r].host});
  }
  log_.Change(std::move(confirm), context.actions);
}

void JobRun::PublishOutput(const RunContext& context) {
  phase_ = Phase::kPublishing;
  output_is_whole_ = true;
  since_ = context.now.monotonic;
  deadline_ = since_ + context.options.end_deadline;
  log_.Change({.name = output_,
               .change = Change::kPublish,
               .to = common::ids::kModelFolder},
              context.actions);
}

void JobRun::RemoveOutput(const RunContext& context) {
  if (output_.empty() || output_is_whole_) return;
  log_.Change({.name = output_, .change = Change::kRemove}, context.actions);
}

void JobRun::FolderChanged(const dispatch::FolderChanged& done,
                           const RunContext& context) {
  if (!done.status.ok()) {
    v1::Cause cause = common::rpc::ToCause(
        common::status::Annotate(done.status, "the job's results"),
        done.stage_name);
    if (output_is_whole_) {
      absl::StrAppend(cause.mutable_message(),
                      "; the trained model is whole, in ",
                      log_.job().run_directory(), "/", output_);
    }
    Fail(ReasonOf(cause), cause, context);
    return;
  }
  if (done.change == Change::kMake && InPhase(Phase::kProbing)) {
    SendProbes(context);
  } else if (done.change == Change::kConfirm && InPhase(Phase::kProbing)) {
    Assemble(context);
  } else if (done.change == Change::kPublish && InPhase(Phase::kPublishing)) {
    Succeed(context);
  } else if (done.change == Change::kFlush && InPhase(Phase::kClosing)) {
    End(context);
  }
}

}  // namespace penstock::coordinator::dispatch
