#include "coordinator/jobs/job_state.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock::coordinator::jobs {
namespace {

using v1::Job;

// Every legal transition; nothing else is.
const std::vector<std::pair<Job::State, Job::State>>& Transitions() {
  static const auto* const table =
      new std::vector<std::pair<Job::State, Job::State>>{
          {Job::STATE_QUEUED, Job::STATE_PLANNING},        // 1
          {Job::STATE_PLANNING, Job::STATE_ASSEMBLING},    // 2
          {Job::STATE_ASSEMBLING, Job::STATE_RUNNING},     // 3
          {Job::STATE_QUEUED, Job::STATE_CANCELLING},      // 4
          {Job::STATE_PLANNING, Job::STATE_CANCELLING},    // 4
          {Job::STATE_ASSEMBLING, Job::STATE_CANCELLING},  // 4
          {Job::STATE_RUNNING, Job::STATE_CANCELLING},     // 4
          {Job::STATE_CANCELLING, Job::STATE_CANCELLED},   // 5
          {Job::STATE_QUEUED, Job::STATE_FAILED},          // 6
          {Job::STATE_PLANNING, Job::STATE_FAILED},        // 6
          {Job::STATE_ASSEMBLING, Job::STATE_FAILED},      // 6
          {Job::STATE_RUNNING, Job::STATE_FAILED},         // 6
          {Job::STATE_RUNNING, Job::STATE_SUCCEEDED},      // 7
      };
  return *table;
}

}  // namespace

bool IsTerminal(Job::State state) {
  return state == Job::STATE_SUCCEEDED || state == Job::STATE_FAILED ||
         state == Job::STATE_CANCELLED;
}

absl::Status CheckTransition(Job::State from, Job::State to) {
  for (const auto& [a, b] : Transitions()) {
    if (a == from && b == to) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "a job that is ", StateName(from), " cannot become ", StateName(to)));
}

std::string StateName(Job::State state) {
  return std::string(absl::StripPrefix(Job::State_Name(state), "STATE_"));
}

std::string ReasonName(Job::StateReason reason) {
  if (reason == Job::STATE_REASON_UNSPECIFIED) return "";
  return std::string(
      absl::StripPrefix(Job::StateReason_Name(reason), "STATE_REASON_"));
}

std::optional<Job::StateReason> ReasonFromName(const std::string& name) {
  Job::StateReason reason = Job::STATE_REASON_UNSPECIFIED;
  if (!Job::StateReason_Parse(absl::StrCat("STATE_REASON_", name), &reason) ||
      reason == Job::STATE_REASON_UNSPECIFIED) {
    return std::nullopt;
  }
  return reason;
}

}  // namespace penstock::coordinator::jobs
