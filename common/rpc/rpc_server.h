// A gRPC server as every Penstock daemon runs it: our settings, one address,
// the standard health service, and a shutdown that always ends.
#ifndef PENSTOCK_COMMON_RPC_RPC_SERVER_H_
#define PENSTOCK_COMMON_RPC_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_settings.h"
#include "common/rpc/reactor_registry.h"

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

  // Closes the reactors, then the server; removes the Unix socket.
  ~RpcServer();

  // With the port that the kernel chose.
  const Address& address() const { return address_; }

  void SetServing(const std::string& name, bool serving);

 private:
  RpcServer(const Address& address, ReactorRegistry& reactors,
            std::unique_ptr<grpc::Server> server);

  Address address_;
  ReactorRegistry& reactors_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_RPC_SERVER_H_
