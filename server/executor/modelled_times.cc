#include "server/executor/modelled_times.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"
#include "common/time/proto_time.h"

namespace penstock::server::executor {
namespace {

absl::Status NotATime(absl::string_view name, const absl::AlphaNum& value) {
  return absl::InvalidArgumentError(absl::StrCat(
      "assignment: ", name, " is ", value, "; a finite number of at least 0"));
}

absl::StatusOr<absl::Duration> DecodeTime(
    absl::string_view name, const google::protobuf::Duration& from) {
  const absl::Duration time = common::time::FromProto(from);
  if (time < absl::ZeroDuration()) {
    return NotATime(name, absl::FormatDuration(time));
  }
  return time;
}

}  // namespace

absl::Duration ModelledTimes::of(v1::Op op) const {
  switch (op) {
    case v1::OP_FORWARD:
      return forward;
    case v1::OP_BACKWARD:
      return backward;
    case v1::OP_BACKWARD_INPUT:
      return backward_input;
    case v1::OP_BACKWARD_WEIGHT:
      return backward_weight;
    default:
      return absl::ZeroDuration();
  }
}

absl::StatusOr<ModelledTimes> DecodeModelledTimes(
    const v1::ModelledTimes& from) {
  ModelledTimes to;
  ASSIGN_OR_RETURN(to.forward,
                   DecodeTime("modelled_times.forward", from.forward()));
  ASSIGN_OR_RETURN(
      to.backward_input,
      DecodeTime("modelled_times.backward_input", from.backward_input()));
  ASSIGN_OR_RETURN(
      to.backward_weight,
      DecodeTime("modelled_times.backward_weight", from.backward_weight()));
  to.backward = to.backward_input + to.backward_weight;
  if (from.has_backward()) {
    ASSIGN_OR_RETURN(to.backward,
                     DecodeTime("modelled_times.backward", from.backward()));
  }
  return to;
}

absl::StatusOr<transport::modelled::Wire> DecodeModelledTransfers(
    const v1::ModelledTransfers& from) {
  transport::modelled::Wire to{.seconds_per_byte = from.seconds_per_byte()};
  ASSIGN_OR_RETURN(to.latency,
                   DecodeTime("modelled_transfers.latency", from.latency()));
  if (!(to.seconds_per_byte >= 0) || !std::isfinite(to.seconds_per_byte)) {
    return NotATime("modelled_transfers.seconds_per_byte", to.seconds_per_byte);
  }
  return to;
}

}  // namespace penstock::server::executor
