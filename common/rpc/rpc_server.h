// A gRPC server as every Penstock daemon runs it: our settings, one address,
// the standard health service, and a shutdown that always ends.
#ifndef PENSTOCK_COMMON_RPC_RPC_SERVER_H_
#define PENSTOCK_COMMON_RPC_RPC_SERVER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/unix_socket.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace penstock::common::rpc {

// Thread-safe.
class RpcServer {
 public:
  // Listens until destroyed. Borrows the services, and `reactors`, in which
  // every long-lived reactor of theirs is. Health says SERVING for "" and
  // "liveness", NOT_SERVING for "readiness". A Unix socket gets mode 0660.
  // Errors: AlreadyExists when the address is in use (a Unix socket that nobody
  // answers on is replaced), Unavailable with the cause otherwise; both name
  // the address.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const Address& address, const std::vector<grpc::Service*>& services,
      ReactorRegistry& reactors, const Keepalive& keepalive = {});

  // Removes the Unix socket, where it is still this server's; closes the
  // reactors, then the server.
  ~RpcServer();

  // With the port that the kernel chose.
  const Address& address() const { return address_; }

  void SetServing(const std::string& name, bool serving);

 private:
  RpcServer(const Address& address, ReactorRegistry& reactors,
            std::unique_ptr<grpc::Server> server,
            std::optional<PublishedSocket> socket);

  const Address address_;
  ReactorRegistry& reactors_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<PublishedSocket> socket_;  // Of an address that is one.
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_RPC_SERVER_H_
