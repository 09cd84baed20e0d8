// Any bytes as a profile.json: no crash, no exception, errors that are text,
// and an accepted profile whose times a schedule can be timed with.
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/log/log.h"
#include "common/text/utf8.h"
#include "coordinator/dispatch/time_profile.h"
#include "coordinator/planner/costs.h"
#include "coordinator/schedule/costs.h"

using penstock::common::text::FindNotText;
using penstock::coordinator::dispatch::ParseTimeProfile;
using penstock::coordinator::planner::ModelledStage;
using penstock::coordinator::schedule::CheckCosts;
using penstock::coordinator::schedule::Costs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<std::vector<ModelledStage>> stages = ParseTimeProfile(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!stages.ok()) {
    const absl::string_view error = stages.status().message();
    CHECK(absl::IsInvalidArgument(stages.status())) << stages.status();
    CHECK(!error.empty() && error.size() < 1024u);
    CHECK(FindNotText(error) == absl::string_view::npos);
    return 0;
  }
  CHECK(!stages->empty());
  Costs costs;
  for (const ModelledStage& stage : *stages) {
    costs.stages.push_back(stage.times);
    CHECK(stage.split || stage.times.backward.has_value());
  }
  CHECK_OK(CheckCosts(costs, static_cast<int>(stages->size())));
  return 0;
}
