#include "client/report/json_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::client::report {

using nlohmann::json;

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view file,
                               int64_t first_line) {
  // Only an exception tells where; it goes no further than this.
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    const size_t at =
        std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const absl::string_view before = text.substr(0, at);
    const int64_t line =
        first_line + std::count(before.begin(), before.end(), '\n');
    const size_t line_start = before.rfind('\n');
    const size_t column =
        line_start == absl::string_view::npos ? at + 1 : at - line_start;
    return absl::DataLossError(absl::StrCat(
        file, ":", line, ":", column,
        at >= text.size() ? ": the JSON ends too early"
                          : ": not valid JSON here",
        "; the file is damaged, remove it to make a report without it"));
  } catch (const json::exception& error) {
    return absl::DataLossError(
        absl::StrCat(file, ":", first_line, ": ", error.what()));
  }
}

Fields::Fields(const json& value, std::string where, absl::Status& status)
    : value_(value), where_(std::move(where)), status_(status) {
  if (!value_.is_object()) Fault("not an object");
}

const json* Fields::Find(const char* key) const {
  if (!value_.is_object()) return nullptr;
  const auto it = value_.find(key);
  if (it == value_.end() || it->is_null()) return nullptr;
  return &*it;
}

void Fields::Fault(const std::string& what) const {
  if (status_.ok()) {
    status_ = absl::DataLossError(absl::StrCat(where_, ": ", what));
  }
}

void Fields::WrongType(const char* key, const char* expected) const {
  Fault(absl::StrCat("`", key, "` is not ", expected));
}

std::optional<double> Fields::Number(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) {
    WrongType(key, "a number");
    return std::nullopt;
  }
  return found->get<double>();
}

std::optional<int64_t> Fields::Integer(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX)) {
    WrongType(key, "an integer");
    return std::nullopt;
  }
  return found->get<int64_t>();
}

std::string Fields::Text(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr) return "";
  if (!found->is_string()) {
    WrongType(key, "text");
    return "";
  }
  return found->get<std::string>();
}

bool Fields::Flag(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr) return false;
  if (!found->is_boolean()) {
    WrongType(key, "true or false");
    return false;
  }
  return found->get<bool>();
}

const json* Fields::Array(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr || found->is_array()) return found;
  WrongType(key, "an array");
  return nullptr;
}

const json* Fields::Object(const char* key) const {
  const json* found = Find(key);
  if (found == nullptr || found->is_object()) return found;
  WrongType(key, "an object");
  return nullptr;
}

std::string Fields::Where(const char* key) const {
  return absl::StrCat(where_, ": ", key);
}

std::string Fields::Where(const char* key, size_t index) const {
  return absl::StrCat(where_, ": ", key, "[", index, "]");
}

}  // namespace penstock::client::report
