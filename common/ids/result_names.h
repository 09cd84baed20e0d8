// What the files of a job's result folder are called: the coordinator writes
// most of them, `penstock run` adds to them and reads them.
#ifndef PENSTOCK_COMMON_IDS_RESULT_NAMES_H_
#define PENSTOCK_COMMON_IDS_RESULT_NAMES_H_

namespace penstock::common::ids {

// The coordinator's.
inline constexpr char kResolvedJobFile[] = "job.yaml";
inline constexpr char kEventsFile[] = "events.jsonl";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kSummaryFile[] = "summary.json";
inline constexpr char kTraceFile[] = "trace.json";
inline constexpr char kPredictedFile[] = "predicted.json";
inline constexpr char kProfileFile[] = "profile.json";

// The trained model, of the stages' shards; and how the folder is called that
// it is made in: TERM-EPOCH follows.
inline constexpr char kModelFolder[] = "model";
inline constexpr char kUnfinishedModel[] = ".model-tmp-";

// What `run` adds.
inline constexpr char kReportFile[] = "report.html";
inline constexpr char kLogFolder[] = "logs";

}  // namespace penstock::common::ids

#endif  // PENSTOCK_COMMON_IDS_RESULT_NAMES_H_
