#include "client/json_output.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/text/utf8.h"
#include "common/time/proto_time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace penstock::client {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json NumberOrNull(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// STATE_RUNNING of enum State is RUNNING.
std::string WithoutPrefix(const EnumValueDescriptor& value) {
  std::string prefix;
  const std::string& name = value.type()->name();
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && absl::ascii_isupper(name[i])) prefix += '_';
    prefix += absl::ascii_toupper(name[i]);
  }
  return std::string(
      absl::StripPrefix(value.name(), absl::StrCat(prefix, "_")));
}

// One value: the field itself (index < 0), or an element of a repeated one.
Json Value(const Message& message, const FieldDescriptor& field, int index) {
  const auto& reflection = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? reflection.GetRepeatedInt32(message, &field, index)
                      : reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? reflection.GetRepeatedInt64(message, &field, index)
                      : reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? reflection.GetRepeatedUInt32(message, &field, index)
                      : reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? reflection.GetRepeatedUInt64(message, &field, index)
                      : reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberOrNull(
          repeated ? reflection.GetRepeatedDouble(message, &field, index)
                   : reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberOrNull(
          repeated ? reflection.GetRepeatedFloat(message, &field, index)
                   : reflection.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? reflection.GetRepeatedBool(message, &field, index)
                      : reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return WithoutPrefix(
          repeated ? *reflection.GetRepeatedEnum(message, &field, index)
                   : *reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text =
          repeated ? reflection.GetRepeatedString(message, &field, index)
                   : reflection.GetString(message, &field);
      return field.type() == FieldDescriptor::TYPE_BYTES
                 ? absl::BytesToHexString(text)
                 : Printable(text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(repeated
                        ? reflection.GetRepeatedMessage(message, &field, index)
                        : reflection.GetMessage(message, &field));
  }
  return nullptr;
}

bool NeedsQuotes(const std::string& text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_-./", c)) return true;
  }
  const char first = text.front();
  return !absl::ascii_isalpha(first) || text == "true" || text == "false" ||
         text == "null" || text == "yes" || text == "no" || text == "on" ||
         text == "off";
}

void AppendYaml(const Json& json, int indent, std::string& out) {
  const std::string pad(indent, ' ');
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) {
      absl::StrAppend(&out, pad, key, ":");
      const bool nested =
          (value.is_object() || value.is_array()) && !value.empty();
      absl::StrAppend(&out, nested ? "\n" : " ");
      AppendYaml(value, nested ? indent + 2 : 0, out);
    }
  } else if (json.is_array() && !json.empty()) {
    for (const Json& value : json) {
      std::string item;
      AppendYaml(value, indent + 2, item);
      // The item's own indentation gives way to the dash.
      absl::string_view rest = item;
      rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
      absl::StrAppend(&out, pad, "- ", rest);
    }
  } else if (json.is_string() && !NeedsQuotes(json.get<std::string>())) {
    absl::StrAppend(&out, json.get<std::string>(), "\n");
  } else {
    absl::StrAppend(&out, json.dump(), "\n");
  }
}

}  // namespace

Json ToJson(const Message& message) {
  if (const auto* stamp =
          dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ",
                            common::time::FromProto(*stamp),
                            absl::UTCTimeZone());
  }
  if (const auto* duration =
          dynamic_cast<const google::protobuf::Duration*>(&message)) {
    return absl::StrCat(
        absl::ToDoubleSeconds(common::time::FromProto(*duration)), "s");
  }
  Json json = Json::object();
  const auto& reflection = *message.GetReflection();
  const auto& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    Json& value = json[field.name()];
    if (field.is_repeated()) {
      value = Json::array();
      for (int j = 0; j < reflection.FieldSize(message, &field); ++j) {
        value.push_back(Value(message, field, j));
      }
    } else if (field.has_presence() && !reflection.HasField(message, &field)) {
      value = nullptr;
    } else {
      value = Value(message, field, -1);
    }
  }
  return json;
}

std::string EnumWord(const google::protobuf::EnumDescriptor& type, int value) {
  const EnumValueDescriptor* known = type.FindValueByNumber(value);
  return known != nullptr ? WithoutPrefix(*known) : absl::StrCat(value);
}

std::string ToYaml(const Json& json) {
  std::string out;
  AppendYaml(json, 0, out);
  return out;
}

std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t control =
        text[0] == '\r' ? 1 : common::text::ControlBytes(text);
    if (control == 0) out += text[0];
    text.remove_prefix(std::max<size_t>(control, 1));
  }
  return out;
}

}  // namespace penstock::client
