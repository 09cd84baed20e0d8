// JSON from outside, bounded and without exceptions, and its typed fields.
#ifndef PENSTOCK_COORDINATOR_SPEC_JSON_FIELDS_H_
#define PENSTOCK_COORDINATOR_SPEC_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::coordinator::spec {

// At most 1 MiB of UTF-8 text, 32 levels; nullopt: `errors` says where and why.
std::optional<nlohmann::json> ParseJson(absl::string_view bytes,
                                        std::vector<std::string>& errors);

// Absent or null.
bool IsUnset(const nlohmann::json& object, const char* key);

// The value as a message shows it: one line, at most 64 bytes.
std::string ShowJson(const nlohmann::json& value);

// The field's value; nullopt where it is absent or null (no error), or of
// another type or out of range (one error "KEY: ..."). Wholes are 1 .. max.
std::optional<int64_t> WholeField(const nlohmann::json& object, const char* key,
                                  int64_t max,
                                  std::vector<std::string>& errors);
std::optional<double> NumberField(const nlohmann::json& object, const char* key,
                                  std::vector<std::string>& errors);
std::optional<bool> FlagField(const nlohmann::json& object, const char* key,
                              std::vector<std::string>& errors);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_JSON_FIELDS_H_
