// Where a line stops being JSON: simdjson is fast and says only that it does.
#ifndef PENSTOCK_SERVER_DATA_JSON_FAULT_H_
#define PENSTOCK_SERVER_DATA_JSON_FAULT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::server::data {

struct JsonFault {
  int64_t at = 0;  // The byte, from 0; the line's size where it ends too early.
  std::string why;  // "unexpected ']'; expected ..."
};

// nullopt where the line is JSON, or has a 0 byte after it.
std::optional<JsonFault> FindJsonFault(absl::string_view line);

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_FAULT_H_
