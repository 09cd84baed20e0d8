#include "coordinator/dispatch/summary.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest/sha256.h"
#include "common/ids/op_letter.h"
#include "coordinator/jobs/job_state.h"
#include "coordinator/schedule/named_schedules.h"
#include "coordinator/spec/paths.h"
#include "coordinator/spec/resolved_yaml.h"
#include "nlohmann/json.hpp"

namespace penstock::coordinator::dispatch {
namespace {

using nlohmann::ordered_json;

constexpr auto kReplace = ordered_json::error_handler_t::replace;

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value.has_value() ? ordered_json(*value) : ordered_json(nullptr);
}

// Of the whole job, once the rank has ended; before, of its assembly.
std::optional<int64_t> MeasuredBytes(const SummaryRequest& request, int rank) {
  const auto has = [rank](const auto* answers) {
    return answers != nullptr && rank < static_cast<int>(answers->size());
  };
  if (has(request.ends) && (*request.ends)[rank].has_peak_memory()) {
    return TotalBytes((*request.ends)[rank].peak_memory());
  }
  if (has(request.ready)) return TotalBytes((*request.ready)[rank].memory());
  return std::nullopt;
}

// What the plan makes of the job file's pipeline.
ordered_json PipelineEntry(const SummaryRequest& request) {
  if (request.plan == nullptr) return nullptr;
  const planner::Plan& plan = *request.plan;
  const schedule::Shape shape{
      .ranks = plan.program.ranks(),
      .chunks = plan.program.placement.stages() / plan.program.ranks(),
      .micro_batches = plan.program.micro_batches};
  const std::optional<schedule::ClosedForm> closed =
      schedule::ClosedFormOf(plan.schedule, shape);
  return {
      {"schedule", plan.schedule},
      {"found",
       plan.found.empty() ? ordered_json(nullptr) : ordered_json(plan.found)},
      {"ranks", shape.ranks},
      {"chunks", shape.chunks},
      {"micro_batches", shape.micro_batches},
      {"closed_form", closed.has_value()
                          ? ordered_json{{"formula", closed->formula},
                                         {"bubble_rate", closed->bubble_rate}}
                          : ordered_json(nullptr)}};
}

ordered_json StageEntry(const SummaryRequest& request, int rank) {
  const planner::Plan& plan = *request.plan;
  const planner::RankMemory& memory = plan.memory[rank];
  ordered_json stage;
  stage["rank"] = rank;
  stage["name"] = request.crew.members[rank].name;
  stage["host"] = request.crew.members[rank].host;
  stage["chunks"] = ordered_json::array();
  for (const int s : schedule::StagesOfRank(plan.program.placement, rank)) {
    const planner::StageLayers& layers = plan.stages[s];
    stage["chunks"].push_back(
        {{"stage", s},
         {"blocks", {layers.first_block, layers.end_block}},
         {"embedding", layers.embedding},
         {"head", layers.head}});
  }
  const std::optional<int64_t> measured = MeasuredBytes(request, rank);
  stage["peak_bytes"] = {
      {"predicted", memory.total()},
      {"measured",
       measured.has_value() ? ordered_json(*measured) : ordered_json(nullptr)}};
  const bool counted =
      request.accounting != nullptr && request.accounting->steps() > 0;
  const RankTotals totals =
      counted ? request.accounting->totals()[rank] : RankTotals{};
  stage["peak_activation_bytes"] = {
      {"predicted", memory.peak_activation_bytes},
      {"measured", counted ? ordered_json(totals.peak_activation_bytes)
                           : ordered_json(nullptr)}};
  stage["peak_in_flight"] =
      counted ? ordered_json(totals.peak_in_flight) : ordered_json(nullptr);
  stage["busy_seconds"] = static_cast<double>(totals.busy_ns) * 1e-9;
  return stage;
}

ordered_json Versions(const SummaryRequest& request) {
  ordered_json devices = ordered_json::array();
  for (size_t i = 0; i < request.crew.members.size(); ++i) {
    devices.push_back(request.crew.device_kind);
  }
  return {{"penstock", request.build.version()},
          {"build", request.build.build()},
          {"protocol", request.crew.members.empty()
                           ? ordered_json(nullptr)
                           : ordered_json(request.crew.protocol)},
          {"numerics", request.crew.numerics_id},
          {"devices", devices}};
}

// SHA-256 over all parameters in lexicographic order of their names: each as
// name, a zero byte, and its 32-byte digest. Hex.
std::string WeightsDigest(const std::vector<v1::EndReport>& ends) {
  std::map<std::string, std::string> digests;
  for (const v1::EndReport& end : ends) {
    for (const v1::TensorDigest& digest : end.digests()) {
      digests[digest.name()] = digest.sha256();
    }
  }
  common::digest::Sha256 all;
  for (const auto& [name, digest] : digests) {
    all.Update(absl::string_view(name));
    all.Update(absl::string_view("\0", 1));
    all.Update(absl::string_view(digest));
  }
  return common::digest::ToHex(all.Finish());
}

// What was trained, how well and how fast.
void AddResults(const SummaryRequest& request, ordered_json& summary) {
  const v1::Job& job = request.job;
  const Accounting* accounting = request.accounting;
  const bool counted = accounting != nullptr && accounting->steps() > 0;
  summary["steps"] = job.step();
  summary["tokens"] = counted ? accounting->tokens() : 0;
  summary["final_loss"] =
      counted ? OrNull(accounting->final_loss()) : ordered_json(nullptr);
  summary["validation_loss"] =
      counted ? OrNull(accounting->validation_loss()) : ordered_json(nullptr);
  summary["weights_sha256"] = request.ends != nullptr
                                  ? ordered_json(WeightsDigest(*request.ends))
                                  : ordered_json(nullptr);
  summary["tokens_per_second"] =
      counted && accounting->total_seconds() > 0
          ? ordered_json(static_cast<double>(accounting->tokens()) /
                         accounting->total_seconds())
          : ordered_json(nullptr);
  const auto seconds = counted ? accounting->step_seconds() : std::nullopt;
  summary["step_seconds"] = {
      {"p50", seconds ? ordered_json(seconds->p50) : ordered_json(nullptr)},
      {"p90", seconds ? ordered_json(seconds->p90) : ordered_json(nullptr)}};
  summary["bubble_rate"] = {
      {"predicted", request.plan != nullptr
                        ? ordered_json(request.plan->predicted.bubble_rate)
                        : ordered_json(nullptr)},
      {"measured",
       counted ? OrNull(accounting->bubble_rate()) : ordered_json(nullptr)}};
  summary["pipeline"] = PipelineEntry(request);
  summary["realisation"] = request.simulated != nullptr
                               ? ordered_json(request.simulated->realisation())
                               : ordered_json(nullptr);
}

}  // namespace

std::string Fingerprint(const spec::JobSpec& spec,
                        const std::string& data_digest) {
  return common::digest::ToHex(common::digest::Sha256Of(absl::StrCat(
      spec::ToResolvedYaml(spec::WithoutPaths(spec)), "\n", data_digest)));
}

std::string Summary(const SummaryRequest& request) {
  const v1::Job& job = request.job;
  ordered_json summary;
  summary["name"] = job.name();
  summary["id"] = job.id();
  summary["state"] = jobs::StateName(job.state());
  const std::string reason = jobs::ReasonName(job.reason());
  summary["reason"] =
      reason.empty() ? ordered_json(nullptr) : ordered_json(reason);
  if (job.has_cause()) {
    summary["cause"] = {{"stage", job.cause().stage_name()},
                        {"message", job.cause().message()}};
  } else {
    summary["cause"] = nullptr;
  }
  AddResults(request, summary);
  summary["stages"] = ordered_json::array();
  if (request.plan != nullptr) {
    for (int rank = 0; rank < request.plan->program.ranks(); ++rank) {
      summary["stages"].push_back(StageEntry(request, rank));
    }
  }
  summary["recoveries"] = ordered_json::array();
  summary["fingerprint"] = request.fingerprint.empty()
                               ? ordered_json(nullptr)
                               : ordered_json(request.fingerprint);
  summary["versions"] = Versions(request);
  return summary.dump(2, ' ', false, kReplace) + "\n";
}

std::string ChromeTrace(const Crew& crew, const std::vector<TracedStep>& steps,
                        common::time::MonotonicTime origin) {
  ordered_json events = ordered_json::array();
  for (size_t rank = 0; rank < crew.members.size(); ++rank) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", rank},
                      {"args", {{"name", crew.members[rank].name}}}});
  }
  for (const TracedStep& step : steps) {
    const std::vector<common::time::MonotonicTime> starts =
        AlignStarts(step.reports);
    for (size_t rank = 0; rank < step.reports.size(); ++rank) {
      const double start = absl::ToDoubleMicroseconds(starts[rank] - origin);
      for (const v1::OpTiming& timing : step.reports[rank].report.timings()) {
        const std::string letter(common::ids::OpLetter(timing.op()));
        const double begin = static_cast<double>(timing.start_ns()) * 1e-3;
        const double end = static_cast<double>(timing.end_ns()) * 1e-3;
        events.push_back({{"name", absl::StrCat(timing.stage(), letter,
                                                timing.micro_batch())},
                          {"cat", letter},
                          {"ph", "X"},
                          {"pid", 0},
                          {"tid", rank},
                          {"ts", start + begin},
                          {"dur", end - begin},
                          {"args",
                           {{"step", step.step},
                            {"stage", timing.stage()},
                            {"micro_batch", timing.micro_batch()}}}});
      }
    }
  }
  const ordered_json trace = {{"traceEvents", events},
                              {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, kReplace) + "\n";
}

std::string ShardFile(int rank, int ranks) {
  if (ranks == 1) return "model.safetensors";
  return absl::StrFormat("model-%05d-of-%05d.safetensors", rank + 1, ranks);
}

std::string ShardIndex(const std::vector<v1::EndReport>& ends,
                       int64_t total_bytes) {
  std::map<std::string, std::string> files;
  for (const v1::EndReport& end : ends) {
    for (const std::string& name : end.shard_tensors()) {
      files[name] = end.shard_file();
    }
  }
  // Sorted, not ordered_json: that looks for each new key among all before it.
  const nlohmann::json index = {{"metadata", {{"total_size", total_bytes}}},
                                {"weight_map", files}};
  return index.dump(2, ' ', false, kReplace) + "\n";
}

}  // namespace penstock::coordinator::dispatch
