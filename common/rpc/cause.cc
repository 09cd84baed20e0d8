#include "common/rpc/cause.h"

#include <string>

#include "common/status/error_details.h"
#include "common/text/utf8.h"

namespace penstock::common::rpc {

v1::Cause ToCause(const absl::Status& status, absl::string_view stage_name) {
  v1::Cause cause;
  cause.set_code(static_cast<int>(status.code()));
  // It may quote file names.
  cause.set_message(text::Utf8OrEscaped(status.message()));
  cause.set_reason(status::Reason(status));
  cause.set_stage_name(std::string(stage_name));
  return cause;
}

absl::Status FromCause(const v1::Cause& cause) {
  const bool known = cause.code() >= 1 && cause.code() <= 16;
  return status::WithReason(
      absl::Status(known ? static_cast<absl::StatusCode>(cause.code())
                         : absl::StatusCode::kUnknown,
                   cause.message()),
      cause.reason());
}

}  // namespace penstock::common::rpc
