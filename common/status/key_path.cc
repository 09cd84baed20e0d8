#include "common/status/key_path.h"

#include <optional>

#include "absl/strings/cord.h"

namespace penstock::common::status {
namespace {

constexpr absl::string_view kKeyPathUrl = "penstock.dev/key_path";

}  // namespace

absl::Status WithKeyPath(absl::Status status, absl::string_view key_path) {
  if (!status.ok()) status.SetPayload(kKeyPathUrl, absl::Cord(key_path));
  return status;
}

std::string KeyPath(const absl::Status& status) {
  const auto payload = status.GetPayload(kKeyPathUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace penstock::common::status
