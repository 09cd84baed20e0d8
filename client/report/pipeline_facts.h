// The shape of a job's pipeline, put together from all of its files.
#ifndef PENSTOCK_CLIENT_REPORT_PIPELINE_FACTS_H_
#define PENSTOCK_CLIENT_REPORT_PIPELINE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/report/run_files.h"

namespace penstock::client::report {

struct PipelineFacts {
  std::string schedule;              // "1f1b"; empty if unknown.
  int64_t ranks = 0;                 // K; 0 if unknown.
  int64_t micro_batches = 0;         // M of a step; 0 if unknown.
  int64_t chunks = 1;                // v
  const TracedStep* step = nullptr;  // To show; into the files' trace.
  // What the textbook says of the bubble rate of stages of equal length, and
  // how: "(K−1)/(M+K−1)". Nothing where there is no closed form.
  std::optional<double> formula_bubble;
  std::string formula;
};

// `files` must outlive the result.
PipelineFacts FactsOf(const RunFiles& files);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_PIPELINE_FACTS_H_
