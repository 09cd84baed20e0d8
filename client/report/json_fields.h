// Reading JSON that something else wrote: every fault is DataLoss with its
// place, nothing throws.
#ifndef PENSTOCK_CLIENT_REPORT_JSON_FIELDS_H_
#define PENSTOCK_CLIENT_REPORT_JSON_FIELDS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::client::report {

// One JSON value. DataLoss naming file, line and column; `first_line` is the
// line of the file that `text` begins on.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         absl::string_view file,
                                         int64_t first_line = 1);

// The members of an object. A member that is missing or null is nothing; one
// of another type sets the status, if it is still OK. Thread-compatible.
class Fields {
 public:
  // `value` and `status` are borrowed for the object's life. `where` is the
  // place to name: "metrics.jsonl:17", "summary.json: stages[2]". A `value`
  // that is no object is a fault.
  Fields(const nlohmann::json& value, std::string where, absl::Status& status);

  std::optional<double> Number(const char* key) const;
  std::optional<int64_t> Integer(const char* key) const;
  std::string Text(const char* key) const;  // "" where there is none.
  bool Flag(const char* key) const;         // false where there is none.
  // Null where there is none, or where it is no array or object.
  const nlohmann::json* Array(const char* key) const;
  const nlohmann::json* Object(const char* key) const;

  // The place of a member, and of an element of an array.
  std::string Where(const char* key) const;
  std::string Where(const char* key, size_t index) const;

  // Sets the status to DataLoss with the place, if it is still OK.
  void Fault(const std::string& what) const;

 private:
  const nlohmann::json* Find(const char* key) const;
  void WrongType(const char* key, const char* expected) const;

  const nlohmann::json& value_;
  const std::string where_;
  absl::Status& status_;
};

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_JSON_FIELDS_H_
