// summary.json, as far as the report shows it.
#ifndef PENSTOCK_CLIENT_REPORT_RUN_SUMMARY_H_
#define PENSTOCK_CLIENT_REPORT_RUN_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::client::report {

struct Prediction {
  std::optional<double> predicted;
  std::optional<double> measured;
};

// What a rank holds of the model: blocks [first_block, end_block).
struct HeldChunk {
  int64_t stage = 0;
  int64_t first_block = 0;
  int64_t end_block = 0;
  bool embedding = false;
  bool head = false;
};

struct RankSummary {
  int64_t rank = 0;
  std::string name;
  std::string host;
  std::vector<HeldChunk> chunks;
  Prediction peak_bytes;
  Prediction peak_activation_bytes;
  std::optional<int64_t> peak_in_flight;
  std::optional<double> busy_seconds;
};

// The shape of the pipeline that ran; empty and 0 where nothing was planned.
struct PipelineSummary {
  std::string schedule;       // "1f1b", "file:orders.csv"
  std::string found;          // By auto: "zb-v", "search"; else empty.
  int64_t ranks = 0;          // K
  int64_t chunks = 0;         // v
  int64_t micro_batches = 0;  // M of a step
  // What the textbook says of the bubble rate of stages of equal length, and
  // how: "(K−1)/(M+K−1)". Nothing where there is no closed form.
  std::string formula;
  std::optional<double> formula_bubble;
};

struct RunSummary {
  std::string name;
  std::string id;
  std::string state;
  std::string reason;
  std::string cause_stage;
  std::string cause_message;
  std::optional<int64_t> steps;
  std::optional<int64_t> tokens;
  std::optional<double> final_loss;
  std::optional<double> validation_loss;
  std::string weights_sha256;
  std::optional<double> tokens_per_second;
  std::optional<double> step_seconds_p50;
  std::optional<double> step_seconds_p90;
  Prediction bubble_rate;
  PipelineSummary pipeline;
  std::optional<double> realisation;
  std::vector<RankSummary> stages;
  std::string fingerprint;
  std::string version;
  std::string build;
  std::optional<int64_t> protocol;
  std::string numerics;
  std::vector<std::string> devices;
};

// `file` is its name in errors. DataLoss for JSON that is damaged or has a
// member of the wrong type; members that are missing are nothing.
absl::StatusOr<RunSummary> ParseRunSummary(absl::string_view text,
                                           absl::string_view file);

// "1f1b", "auto: zb-v"; empty where nothing was planned.
std::string ScheduleText(const PipelineSummary& pipeline);

// "embedding, blocks 0–1", "blocks 6–7, head"; "nothing" for no layers.
std::string LayersText(const std::vector<HeldChunk>& chunks);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_RUN_SUMMARY_H_
