// Messages as JSON and YAML for people's scripts: proto3 JSON with the field
// names of the .proto file, except that 64-bit integers are numbers, enum
// values have no prefix, and unset fields are printed. Control characters of
// remote text are stripped everywhere.
#ifndef PENSTOCK_CLIENT_JSON_OUTPUT_H_
#define PENSTOCK_CLIENT_JSON_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "google/protobuf/message.h"

namespace penstock::client {

// Timestamps are RFC 3339, durations "1.5s"; unset messages are null.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// The name of a value of a message's enum, without prefix: "RUNNING" of
// STATE_RUNNING, "5" where this program knows no name for it.
std::string EnumWord(const google::protobuf::EnumDescriptor& type, int value);
template <typename Enum>
std::string EnumWord(Enum value) {
  return EnumWord(*google::protobuf::GetEnumDescriptor<Enum>(), value);
}

// Block style, strings quoted where YAML would read something else.
std::string ToYaml(const nlohmann::ordered_json& json);

// `text` without control characters but newline and tab: a remote name or
// message must not steer the terminal.
std::string Printable(absl::string_view text);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_JSON_OUTPUT_H_
