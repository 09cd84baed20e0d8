// penstock.v1.Cause, the status inside a message, to and from absl::Status.
#ifndef PENSTOCK_COMMON_RPC_CAUSE_H_
#define PENSTOCK_COMMON_RPC_CAUSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/common.pb.h"

namespace penstock::common::rpc {

// The reason (status/error_details.h) travels along. `stage_name` may be empty.
v1::Cause ToCause(const absl::Status& status, absl::string_view stage_name);

// A code outside 1..16 becomes kUnknown: a Cause is never OK.
absl::Status FromCause(const v1::Cause& cause);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_CAUSE_H_
