#include "coordinator/spec/json_fields.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"
#include "coordinator/spec/limits.h"

namespace penstock::coordinator::spec {
namespace {

using Json = nlohmann::json;

// Deepest nesting of brackets outside strings. Counted before parsing, because
// the depth decides how deep the parser and the destructor go.
int DepthOf(absl::string_view bytes) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

std::string PlaceOf(absl::string_view bytes, size_t offset) {
  int line = 1;
  int column = 1;
  for (const char c : bytes.substr(0, offset)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  return absl::StrCat("line ", line, ", column ", column);
}

}  // namespace

std::optional<Json> ParseJson(absl::string_view bytes,
                              std::vector<std::string>& errors) {
  if (bytes.size() > kMaxJobFileBytes) {
    errors.push_back(absl::StrCat("the file has ", bytes.size(),
                                  " bytes; at most ", kMaxJobFileBytes,
                                  " (1 MiB) are allowed"));
    return std::nullopt;
  }
  const size_t bad = common::text::FindNotText(bytes);
  if (bad != absl::string_view::npos) {
    errors.push_back(
        absl::StrCat(PlaceOf(bytes, bad), ": the file is not UTF-8 text"));
    return std::nullopt;
  }
  if (DepthOf(bytes) > kMaxDepth) {
    errors.push_back(
        absl::StrCat("the file is nested deeper than ", kMaxDepth, " levels"));
    return std::nullopt;
  }
  try {
    return Json::parse(bytes.begin(), bytes.end());
  } catch (const Json::parse_error& error) {
    // Not its what(), which quotes the file without bound. `byte` counts from
    // 1 and names the last byte read.
    const size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    errors.push_back(absl::StrCat(
        PlaceOf(bytes, std::min(offset, bytes.size())), ": not valid JSON"));
  } catch (const Json::exception&) {
    errors.push_back("a number in the file is out of range");
  }
  return std::nullopt;
}

bool IsUnset(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null();
}

std::string ShowJson(const Json& value) {
  constexpr size_t kMaxShown = 64;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown - 3) + "...";
  return text;
}

std::optional<int64_t> WholeField(const Json& object, const char* key,
                                  int64_t max,
                                  std::vector<std::string>& errors) {
  if (IsUnset(object, key)) return std::nullopt;
  const Json& value = object[key];
  // Unsigned first: a number above 2^63 must not turn negative.
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() >= 1 &&
                value.get<uint64_t>() <= static_cast<uint64_t>(max)
          : value.is_number_integer() && value.get<int64_t>() >= 1 &&
                value.get<int64_t>() <= max;
  if (fits) return value.get<int64_t>();
  errors.push_back(absl::StrCat(key, ": is ", ShowJson(value),
                                ", must be a whole number from 1 to ", max));
  return std::nullopt;
}

std::optional<double> NumberField(const Json& object, const char* key,
                                  std::vector<std::string>& errors) {
  if (IsUnset(object, key)) return std::nullopt;
  const Json& value = object[key];
  if (value.is_number() && std::isfinite(value.get<double>())) {
    return value.get<double>();
  }
  errors.push_back(
      absl::StrCat(key, ": is ", ShowJson(value), ", must be a number"));
  return std::nullopt;
}

std::optional<bool> FlagField(const Json& object, const char* key,
                              std::vector<std::string>& errors) {
  if (IsUnset(object, key)) return std::nullopt;
  const Json& value = object[key];
  if (value.is_boolean()) return value.get<bool>();
  errors.push_back(
      absl::StrCat(key, ": is ", ShowJson(value), ", must be true or false"));
  return std::nullopt;
}

}  // namespace penstock::coordinator::spec
