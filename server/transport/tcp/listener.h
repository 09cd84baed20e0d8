// The data plane over TCP: the one header of this folder that others include.
//
// A daemon opens one listener at its start and tells the coordinator its
// address. For each epoch it makes a transport from it: one connection per
// directed edge, dialled by the edge's source, proved with the epoch's secret
// in both directions (docs/wire_protocol.md). The data are not encrypted.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/ids/random.h"
#include "common/time/clock.h"
#include "server/transport/tcp/listener_options.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// Thread-safe.
class Listener {
 public:
  // InvalidArgument for a malformed address; Unavailable when it is in use or
  // not of this machine. `clock` must outlive every event of its transports.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      const ListenerOptions& options, const common::time::Clock& clock,
      const common::ids::RandomSource& random);
  // REQUIRES: its transports are destroyed.
  virtual ~Listener() = default;

  // "127.0.0.1:40711", with the port that the kernel chose.
  virtual std::string address() const = 0;

  // This rank's transport for an epoch; starts to dial at once.
  // InvalidArgument: a secret of less than 16 bytes, a malformed peer address
  // (of a source end), a capacity below 1, a stage beyond 65535 or an end given
  // twice. AlreadyExists: an edge of this epoch is open on this listener.
  virtual absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(
      const TransportOptions& options) = 0;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_LISTENER_H_
