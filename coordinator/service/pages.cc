#include "coordinator/service/pages.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/registry/natural_order.h"

namespace penstock::coordinator::service {

absl::StatusOr<int> PageSize(int requested) {
  if (requested < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_size is ", requested, "; give 1 to ", kLargestPage,
                     ", or 0 for ", kDefaultPage));
  }
  return requested == 0 ? kDefaultPage : std::min(requested, kLargestPage);
}

absl::StatusOr<v1::ListStagesResponse> PageOfStages(
    std::vector<v1::Stage> stages, absl::string_view token, int requested) {
  ASSIGN_OR_RETURN(const int size, PageSize(requested));
  v1::ListStagesResponse page;
  for (v1::Stage& stage : stages) {
    if (!token.empty() && !registry::NaturalLess(token, stage.name())) continue;
    if (page.stages_size() == size) {
      page.set_next_page_token(page.stages(size - 1).name());
      break;
    }
    *page.add_stages() = std::move(stage);
  }
  return page;
}

v1::ListJobsResponse PageOfJobs(std::vector<v1::Job> jobs, int size,
                                int64_t bytes) {
  // Before each element: its tag, and its length in as many as five bytes.
  constexpr int64_t kElement = 6;
  v1::ListJobsResponse page;
  for (v1::Job& job : jobs) {
    bytes -= static_cast<int64_t>(job.ByteSizeLong()) + kElement;
    if (page.jobs_size() == size || (bytes < 0 && page.jobs_size() > 0)) {
      page.set_next_page_token(page.jobs(page.jobs_size() - 1).id());
      break;
    }
    *page.add_jobs() = std::move(job);
  }
  return page;
}

}  // namespace penstock::coordinator::service
