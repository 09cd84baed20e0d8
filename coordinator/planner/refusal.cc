#include "coordinator/planner/refusal.h"

#include <optional>

#include "absl/strings/cord.h"
#include "common/status/error_details.h"

namespace penstock::coordinator::planner {
namespace {

constexpr char kKeyPath[] = "penstock.dev/key_path";

}  // namespace

absl::Status WithKeyPath(absl::Status status, absl::string_view key_path) {
  if (!status.ok()) status.SetPayload(kKeyPath, absl::Cord(key_path));
  return status;
}

absl::Status Refuse(absl::string_view key_path, absl::string_view message) {
  return WithKeyPath(absl::InvalidArgumentError(message), key_path);
}

absl::Status RefuseMemory(absl::string_view key_path,
                          absl::string_view message) {
  return WithKeyPath(
      common::status::WithReason(absl::ResourceExhaustedError(message),
                                 "OUT_OF_MEMORY"),
      key_path);
}

std::string KeyPath(const absl::Status& status) {
  const auto payload = status.GetPayload(kKeyPath);
  return payload.has_value() ? std::string(*payload) : "";
}

}  // namespace penstock::coordinator::planner
