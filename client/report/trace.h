// trace.json: commands as they ran, in Chrome's trace format.
#ifndef PENSTOCK_CLIENT_REPORT_TRACE_H_
#define PENSTOCK_CLIENT_REPORT_TRACE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/report/heatmap.h"

namespace penstock::client::report {

// The commands of one step on all ranks; seconds.
struct TracedStep {
  int64_t step = 0;
  std::vector<HeatmapBox> boxes;
};

// Steps in ascending order. A command is a complete event ("ph": "X") with
// `step`, `stage` and `micro_batch` in its args; its rank is `tid`, its
// operation `cat`, one of F, B, I, W. Names of ranks ("ph": "M", thread_name)
// are passed over. DataLoss for damaged JSON, for members that are missing or
// have the wrong type, and for every other event: a picture without it would be
// wrong.
absl::StatusOr<std::vector<TracedStep>> ParseTrace(absl::string_view text,
                                                   absl::string_view file);

// The step to show: of those with all their commands, without the first two of
// the job where there are others, the one whose length is the median. Null
// without steps. Points into `steps`.
const TracedStep* SteadyStep(const std::vector<TracedStep>& steps);

// One of the job's first two, which fill memory and caches.
bool IsWarmUp(const TracedStep& step);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_TRACE_H_
