#include "tests/server/data/json_oracle.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/data/json_line.h"

namespace penstock::server::data {
namespace {

using nlohmann::json;

enum class Verdict { kObject, kNoObject, kTooLargeNumber };

Verdict OracleParse(absl::string_view line, json& out) {
  try {
    out = json::parse(line.begin(), line.end());
  } catch (const json::out_of_range&) {
    return Verdict::kTooLargeNumber;  // 1e999: JSON, but no double.
  } catch (const json::parse_error&) {
    return Verdict::kNoObject;
  }
  return out.is_object() ? Verdict::kObject : Verdict::kNoObject;
}

std::string CompareTokens(const json& object, const char* key, bool has,
                          const std::vector<int32_t>& tokens) {
  if (object.contains(key) != has) return absl::StrCat(key, ": presence");
  if (has && object[key] != json(tokens)) return absl::StrCat(key, ": values");
  return "";
}

std::string CompareObject(const json& object, absl::string_view field,
                          const JsonLine& line) {
  std::string difference =
      CompareTokens(object, "input_ids", line.has_tokens, line.input_ids);
  if (!difference.empty()) return difference;
  if (line.has_tokens) {
    return CompareTokens(object, "labels", line.has_labels, line.labels);
  }
  const std::string key(field);
  if (object.contains(key) != line.text.has_value()) return "text: presence";
  if (line.text.has_value() && object[key] != *line.text) return "text: value";
  return "";
}

}  // namespace

OracleVerdict CompareWithOracle(absl::string_view line,
                                absl::string_view field) {
  JsonLine parsed;
  const absl::Status status = JsonLineParser().Parse(line, field, parsed);
  json object;
  const Verdict verdict = OracleParse(line, object);
  OracleVerdict result{.accepted = status.ok()};
  if (absl::StrContains(line, absl::string_view("\0", 1))) {
    // nlohmann-json takes a 0 byte for the end of its input.
    result.disagreement = status.ok() ? "accepted a 0 byte" : "";
  } else if (status.ok() && verdict == Verdict::kObject) {
    result.disagreement = CompareObject(object, field, parsed);
  } else if (status.ok() && verdict == Verdict::kNoObject) {
    result.disagreement = "accepted what is no JSON object";
  } else if (absl::StartsWith(status.message(), "not valid JSON") &&
             verdict == Verdict::kObject &&
             !absl::StartsWith(line, "\xef\xbb\xbf")) {
    // nlohmann-json drops a byte order mark; LineScanner does that for us.
    result.disagreement =
        absl::StrCat("refused a JSON object: ", status.message());
  }
  return result;
}

}  // namespace penstock::server::data
