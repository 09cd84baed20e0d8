// How long operations and transfers take where the device models time
// (virtual): the checked forms of v1::ModelledTimes and v1::ModelledTransfers.
#ifndef PENSTOCK_SERVER_EXECUTOR_MODELLED_TIMES_H_
#define PENSTOCK_SERVER_EXECUTOR_MODELLED_TIMES_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/transport/modelled/modelled_transport.h"

namespace penstock::server::executor {

// How long the operations of one micro-batch take on a device that models time;
// zero on all others.
struct ModelledTimes {
  absl::Duration forward, backward_input, backward_weight, backward;

  absl::Duration of(v1::Op op) const;
};

// A full backward that is not given takes as long as both of its halves.
// InvalidArgument names the field: a time below 0.
absl::StatusOr<ModelledTimes> DecodeModelledTimes(
    const v1::ModelledTimes& from);

// InvalidArgument names the field: a latency below 0, seconds a byte that are
// no finite number of at least 0.
absl::StatusOr<transport::modelled::Wire> DecodeModelledTransfers(
    const v1::ModelledTransfers& from);

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_MODELLED_TIMES_H_
