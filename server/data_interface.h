// On which of this machine's interfaces data travel where no flag says it: the
// one that leads to the coordinator, because that is where the other stages are
// looked for too.
#ifndef PENSTOCK_SERVER_DATA_INTERFACE_H_
#define PENSTOCK_SERVER_DATA_INTERFACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/address.h"

namespace penstock::server {

// The interface's numeric address. "127.0.0.1" for a coordinator on a Unix
// socket, which is on this machine. Sends nothing to the coordinator, but
// blocks for the name server where the host is a name. Unavailable: an unknown
// name, no route.
absl::StatusOr<std::string> InterfaceTowards(
    const common::rpc::Address& coordinator);

// InvalidArgument for 0.0.0.0 and ::, which are all interfaces: other stages
// are told the address and could not connect to it.
absl::Status CheckOneInterface(const std::string& address);

}  // namespace penstock::server

#endif  // PENSTOCK_SERVER_DATA_INTERFACE_H_
