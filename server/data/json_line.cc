#include "server/data/json_line.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status/error_details.h"
#include "common/status/reasons.h"
#include "common/status/status_macros.h"
#include "common/text/quote.h"
#include "server/data/json_fault.h"
#include "simdjson.h"

namespace penstock::server::data {

using simdjson::dom::element;

struct JsonLineParser::Document {
  simdjson::dom::parser parser;
};

namespace {

enum class TokenKind { kId, kLabel };

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

absl::Status ToStatus(simdjson::error_code error, absl::string_view line) {
  if (error == simdjson::MEMALLOC) {
    return NoMemoryForLine(line.size());
  }
  if (error == simdjson::DEPTH_ERROR) {
    return absl::InvalidArgumentError(
        absl::StrCat("values are nested deeper than ", kMaxJsonDepth));
  }
  if (const std::optional<JsonFault> fault = FindJsonFault(line)) {
    const absl::string_view there = line.substr(fault->at, 16);
    return absl::InvalidArgumentError(absl::StrCat(
        "not valid JSON at byte ", fault->at, ": ", fault->why,
        there.empty() ? ""
                      : absl::StrCat(", found ", common::text::Quoted(there))));
  }
  if (error == simdjson::NUMBER_ERROR) {
    return absl::InvalidArgumentError(
        "holds a number that neither 64 bits nor an f64 can hold");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not valid JSON: ", simdjson::error_message(error)));
}

absl::Status ReadTokens(const element& value, absl::string_view key,
                        TokenKind kind, std::vector<int32_t>& out) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " must be an array of integers"));
  }
  for (const element& item : array) {
    int64_t number;
    const bool integer = item.get(number) == simdjson::SUCCESS;
    const bool token =
        integer && number >= 0 && number <= std::numeric_limits<int32_t>::max();
    const bool ignored =
        kind == TokenKind::kLabel && integer && number == kIgnoredLabel;
    if (!token && !ignored) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, "[", out.size(), "] must be an integer from 0 to 2147483647",
          kind == TokenKind::kLabel ? ", or -100" : ""));
    }
    out.push_back(static_cast<int32_t>(number));
  }
  return absl::OkStatus();
}

absl::Status ReadText(const element& value, absl::string_view field,
                      JsonLine& out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the text field ", common::text::Quoted(field), " must be a string"));
  }
  out.text.emplace(text);
  return absl::OkStatus();
}

// The first position that a mask leaves out; nullopt where it leaves out none,
// or is no array.
std::optional<int64_t> FirstZero(const element& mask) {
  simdjson::dom::array array;
  if (mask.get(array) != simdjson::SUCCESS) return std::nullopt;
  int64_t position = 0;
  for (const element& item : array) {
    int64_t number;
    bool flag;
    if (item.get(number) == simdjson::SUCCESS
            ? number == 0
            : item.get(flag) == simdjson::SUCCESS && !flag) {
      return position;
    }
    ++position;
  }
  return std::nullopt;
}

// Whether a label that counts is predicted from a position that the mask
// leaves out. Padding at the end, with labels of -100, changes nothing.
bool Matters(const element& mask, const JsonLine& line) {
  const std::optional<int64_t> first = FirstZero(mask);
  if (!first.has_value()) return false;
  const std::vector<int32_t>& labels =
      line.has_labels ? line.labels : line.input_ids;
  for (size_t i = *first + 1; i < labels.size(); ++i) {
    if (labels[i] != kIgnoredLabel) return true;
  }
  return false;
}

// Notes the value of a key that may be there once.
absl::Status Note(absl::string_view key, const element& value,
                  std::optional<element>& noted) {
  if (noted.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key ", common::text::Quoted(key), " is there twice"));
  }
  noted = value;
  return absl::OkStatus();
}

// labels count only beside input_ids, the text field only without: what a text
// set keeps under "labels" is its own affair. So members are noted first.
absl::Status ReadObject(const simdjson::dom::object& object,
                        absl::string_view field, JsonLine& out) {
  std::optional<element> ids, labels, mask, text;
  for (const simdjson::dom::key_value_pair& member : object) {
    const absl::string_view key = View(member.key);
    if (key == "input_ids") RETURN_IF_ERROR(Note(key, member.value, ids));
    if (key == "labels") RETURN_IF_ERROR(Note(key, member.value, labels));
    if (key == "attention_mask") mask = member.value;
    if (key == field) RETURN_IF_ERROR(Note(key, member.value, text));
  }
  if (!ids.has_value()) {
    return text.has_value() ? ReadText(*text, field, out) : absl::OkStatus();
  }
  out.has_tokens = true;
  RETURN_IF_ERROR(ReadTokens(*ids, "input_ids", TokenKind::kId, out.input_ids));
  if (labels.has_value()) {
    out.has_labels = true;
    RETURN_IF_ERROR(
        ReadTokens(*labels, "labels", TokenKind::kLabel, out.labels));
    if (out.labels.size() != out.input_ids.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(out.labels.size(), " labels for ", out.input_ids.size(),
                       " input_ids; they must be as many"));
    }
  }
  out.masks = mask.has_value() && Matters(*mask, out);
  return absl::OkStatus();
}

}  // namespace

absl::Status NoMemory(absl::string_view what) {
  return common::status::WithReason(
      absl::ResourceExhaustedError(
          absl::StrCat("no memory for ", what, "; free memory on its host")),
      common::status::kReasonOutOfMemory);
}

absl::Status NoMemoryForLine(size_t bytes) {
  return NoMemory(absl::StrCat("a line of ", bytes, " bytes of JSON"));
}

JsonLineParser::JsonLineParser() : document_(std::make_unique<Document>()) {}
JsonLineParser::~JsonLineParser() = default;

absl::Status JsonLineParser::Parse(absl::string_view line,
                                   absl::string_view field, JsonLine& out) {
  out.has_tokens = false;
  out.input_ids.clear();
  out.has_labels = false;
  out.labels.clear();
  out.masks = false;
  out.text.reset();
  simdjson::dom::parser& parser = document_->parser;
  if (parser.capacity() < line.size()) {
    // One more for the line's own object.
    const auto error = parser.allocate(line.size(), kMaxJsonDepth + 1);
    if (error != simdjson::SUCCESS) return ToStatus(error, line);
  }
  element root;
  // Copied, as simdjson reads some bytes beyond the end.
  const auto error = parser.parse(line.data(), line.size(), true).get(root);
  if (error != simdjson::SUCCESS) return ToStatus(error, line);
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("must be a JSON object, found ",
                     common::text::Quoted(line.substr(0, 16))));
  }
  return ReadObject(object, field, out);
}

}  // namespace penstock::server::data
