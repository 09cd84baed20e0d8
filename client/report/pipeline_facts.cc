#include "client/report/pipeline_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "client/report/job_yaml.h"

namespace penstock::client::report {
namespace {

// 0 where there is no such number.
int64_t Number(const std::map<std::string, std::string>& keys,
               const char* key) {
  const auto it = keys.find(key);
  int64_t value = 0;
  if (it == keys.end() || !absl::SimpleAtoi(it->second, &value)) return 0;
  return value;
}

void TakeFormula(PipelineFacts& facts) {
  const auto K = static_cast<double>(facts.ranks);
  const auto M = static_cast<double>(facts.micro_batches);
  if (facts.ranks < 1 || facts.micro_batches < 1) return;
  if (facts.schedule == "gpipe" || facts.schedule == "1f1b") {
    facts.formula = "(K−1)/(M+K−1)";
    facts.formula_bubble = (K - 1) / (M + K - 1);
  } else if (facts.schedule == "naive") {
    facts.formula = "1 − 1/K";
    facts.formula_bubble = 1 - 1 / K;
  }
}

}  // namespace

PipelineFacts FactsOf(const RunFiles& files) {
  PipelineFacts facts;
  const auto keys = ResolvedKeys(files.job_yaml);
  const auto schedule = keys.find("pipeline.schedule");
  if (schedule != keys.end()) facts.schedule = schedule->second;
  facts.ranks = Number(keys, "pipeline.stages");
  const int64_t a_pass = Number(keys, "batch.micro_batch") *
                         std::max<int64_t>(Number(keys, "replicas"), 1);
  if (a_pass > 0) facts.micro_batches = Number(keys, "batch.global") / a_pass;

  if (files.summary.has_value() && !files.summary->stages.empty()) {
    facts.ranks = static_cast<int64_t>(files.summary->stages.size());
    for (const RankSummary& rank : files.summary->stages) {
      facts.chunks =
          std::max(facts.chunks, static_cast<int64_t>(rank.chunks.size()));
    }
  }
  // What ran outdoes what was asked for.
  facts.step = SteadyStep(files.trace);
  if (facts.step != nullptr) {
    std::set<int> micro_batches, ranks;
    for (const HeatmapBox& box : facts.step->boxes) {
      micro_batches.insert(box.micro_batch);
      ranks.insert(box.rank);
    }
    facts.micro_batches = static_cast<int64_t>(micro_batches.size());
    facts.ranks = std::max(facts.ranks, static_cast<int64_t>(ranks.size()));
  }
  TakeFormula(facts);
  return facts;
}

}  // namespace penstock::client::report
