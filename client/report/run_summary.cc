#include "client/report/run_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/report/json_fields.h"

namespace penstock::client::report {
namespace {

using nlohmann::json;

Prediction ReadPrediction(const Fields& parent, const char* key,
                          absl::Status& status) {
  const json* object = parent.Object(key);
  if (object == nullptr) return {};
  const Fields fields(*object, parent.Where(key), status);
  return {.predicted = fields.Number("predicted"),
          .measured = fields.Number("measured")};
}

PipelineSummary ReadPipeline(const Fields& fields, absl::Status& status) {
  PipelineSummary pipeline;
  pipeline.schedule = fields.Text("schedule");
  pipeline.found = fields.Text("found");
  pipeline.ranks = fields.Integer("ranks").value_or(0);
  pipeline.chunks = fields.Integer("chunks").value_or(0);
  pipeline.micro_batches = fields.Integer("micro_batches").value_or(0);
  if (const json* closed = fields.Object("closed_form")) {
    const Fields inner(*closed, fields.Where("closed_form"), status);
    pipeline.formula = inner.Text("formula");
    pipeline.formula_bubble = inner.Number("bubble_rate");
  }
  return pipeline;
}

HeldChunk ReadChunk(const Fields& fields) {
  HeldChunk chunk;
  chunk.stage = fields.Integer("stage").value_or(0);
  chunk.embedding = fields.Flag("embedding");
  chunk.head = fields.Flag("head");
  const json* blocks = fields.Array("blocks");
  if (blocks == nullptr) return chunk;
  if (blocks->size() != 2 || !(*blocks)[0].is_number_integer() ||
      !(*blocks)[1].is_number_integer()) {
    fields.Fault("`blocks` is not [first, end)");
    return chunk;
  }
  chunk.first_block = (*blocks)[0].get<int64_t>();
  chunk.end_block = (*blocks)[1].get<int64_t>();
  return chunk;
}

RankSummary ReadRank(const Fields& fields, absl::Status& status) {
  RankSummary rank;
  rank.rank = fields.Integer("rank").value_or(0);
  rank.name = fields.Text("name");
  rank.host = fields.Text("host");
  if (const json* chunks = fields.Array("chunks")) {
    for (size_t i = 0; i < chunks->size(); ++i) {
      rank.chunks.push_back(
          ReadChunk(Fields((*chunks)[i], fields.Where("chunks", i), status)));
    }
  }
  rank.peak_bytes = ReadPrediction(fields, "peak_bytes", status);
  rank.peak_activation_bytes =
      ReadPrediction(fields, "peak_activation_bytes", status);
  rank.peak_in_flight = fields.Integer("peak_in_flight");
  rank.busy_seconds = fields.Number("busy_seconds");
  return rank;
}

void ReadVersions(const Fields& fields, RunSummary& summary) {
  summary.version = fields.Text("penstock");
  summary.build = fields.Text("build");
  summary.protocol = fields.Integer("protocol");
  summary.numerics = fields.Text("numerics");
  const json* devices = fields.Array("devices");
  if (devices == nullptr) return;
  for (const json& device : *devices) {
    if (!device.is_string()) {
      fields.Fault("`devices` has an element that is not text");
      return;
    }
    summary.devices.push_back(device.get<std::string>());
  }
}

void ReadScalars(const Fields& fields, RunSummary& summary) {
  summary.name = fields.Text("name");
  summary.id = fields.Text("id");
  summary.state = fields.Text("state");
  summary.reason = fields.Text("reason");
  summary.steps = fields.Integer("steps");
  summary.tokens = fields.Integer("tokens");
  summary.final_loss = fields.Number("final_loss");
  summary.validation_loss = fields.Number("validation_loss");
  summary.weights_sha256 = fields.Text("weights_sha256");
  summary.tokens_per_second = fields.Number("tokens_per_second");
  summary.realisation = fields.Number("realisation");
  summary.fingerprint = fields.Text("fingerprint");
}

}  // namespace

absl::StatusOr<RunSummary> ParseRunSummary(absl::string_view text,
                                           absl::string_view file) {
  const absl::StatusOr<json> parsed = ParseJson(text, file);
  if (!parsed.ok()) return parsed.status();
  RunSummary summary;
  absl::Status status;
  const Fields fields(*parsed, std::string(file), status);
  ReadScalars(fields, summary);
  if (const json* cause = fields.Object("cause")) {
    const Fields inner(*cause, fields.Where("cause"), status);
    summary.cause_stage = inner.Text("stage");
    summary.cause_message = inner.Text("message");
  }
  if (const json* seconds = fields.Object("step_seconds")) {
    const Fields inner(*seconds, fields.Where("step_seconds"), status);
    summary.step_seconds_p50 = inner.Number("p50");
    summary.step_seconds_p90 = inner.Number("p90");
  }
  summary.bubble_rate = ReadPrediction(fields, "bubble_rate", status);
  if (const json* pipeline = fields.Object("pipeline")) {
    summary.pipeline = ReadPipeline(
        Fields(*pipeline, fields.Where("pipeline"), status), status);
  }
  if (const json* stages = fields.Array("stages")) {
    for (size_t i = 0; i < stages->size(); ++i) {
      const Fields inner((*stages)[i], fields.Where("stages", i), status);
      summary.stages.push_back(ReadRank(inner, status));
    }
  }
  if (const json* versions = fields.Object("versions")) {
    ReadVersions(Fields(*versions, fields.Where("versions"), status), summary);
  }
  if (!status.ok()) return status;
  return summary;
}

std::string ScheduleText(const PipelineSummary& pipeline) {
  if (pipeline.found.empty()) return pipeline.schedule;
  return absl::StrCat(pipeline.schedule, ": ", pipeline.found);
}

std::string LayersText(const std::vector<HeldChunk>& chunks) {
  std::vector<std::string> parts;
  for (const HeldChunk& chunk : chunks) {
    if (chunk.embedding) parts.push_back("embedding");
    const int64_t blocks = chunk.end_block - chunk.first_block;
    if (blocks == 1) parts.push_back(absl::StrCat("block ", chunk.first_block));
    if (blocks > 1) {
      parts.push_back(
          absl::StrCat("blocks ", chunk.first_block, "–", chunk.end_block - 1));
    }
    if (chunk.head) parts.push_back("head");
  }
  return parts.empty() ? "nothing" : absl::StrJoin(parts, ", ");
}

}  // namespace penstock::client::report
