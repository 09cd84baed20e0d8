// report.html of a run directory: self-contained, made from the files that the
// coordinator wrote there. Its first picture is the stages x time heatmap of
// one step; below it loss curve, memory, and the summary.
#ifndef PENSTOCK_CLIENT_REPORT_REPORT_H_
#define PENSTOCK_CLIENT_REPORT_REPORT_H_

#include <string>

#include "absl/status/status.h"

namespace penstock::client::report {

// Reads job.yaml, summary.json, metrics.jsonl, events.jsonl, trace.json and
// predicted.json in `run_directory` and writes report.html there. What is
// missing (a job that failed early) is left out. DataLoss naming file and line
// for a damaged one, but predicted.json, of which the page says so.
absl::Status WriteReport(const std::string& run_directory);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_REPORT_H_
