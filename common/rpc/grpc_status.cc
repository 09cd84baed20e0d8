#include "common/rpc/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/error_details.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace penstock::common::rpc {
namespace {

// Trailers of 8,000 bytes were measured to turn the real status into
// RESOURCE_EXHAUSTED, 6,000 to arrive; the message travels percent-encoded.
constexpr size_t kMaxMessageBytes = 3072;

std::string Shortened(absl::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  absl::string_view kept = message.substr(0, kMaxMessageBytes - 64);
  const size_t line = kept.rfind('\n');
  if (line != absl::string_view::npos) kept = kept.substr(0, line);
  return absl::StrCat(kept, "\n(", message.size() - kept.size(),
                      " more bytes not shown)");
}

}  // namespace

// The codes of the two libraries have the same numbers; a test goes through
// all of them both ways.
grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  if (const std::string reason = status::Reason(status); !reason.empty()) {
    google::rpc::ErrorInfo info;
    info.set_reason(reason);
    info.set_domain(kErrorDomain);
    details.add_details()->PackFrom(info);
  }
  if (const auto delay = status::RetryAfter(status); delay.has_value()) {
    google::rpc::RetryInfo retry;
    const int64_t ns = absl::ToInt64Nanoseconds(*delay);
    retry.mutable_retry_delay()->set_seconds(ns / 1000000000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(ns % 1000000000));
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Shortened(status.message()), details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  absl::Status converted(code >= 1 && code <= 16
                             ? static_cast<absl::StatusCode>(code)
                             : absl::StatusCode::kUnknown,
                         status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return converted;
  for (const auto& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info) && info.domain() == kErrorDomain) {
      converted = status::WithReason(std::move(converted), info.reason());
    }
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&retry)) {
      converted = status::WithRetryAfter(
          std::move(converted),
          absl::Seconds(retry.retry_delay().seconds()) +
              absl::Nanoseconds(retry.retry_delay().nanos()));
    }
  }
  return converted;
}

}  // namespace penstock::common::rpc
