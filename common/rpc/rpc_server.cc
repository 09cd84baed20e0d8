#include "common/rpc/rpc_server.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/rpc/bind_check.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_target.h"
#include "common/status/status_macros.h"

namespace penstock::common::rpc {
namespace {

// Daemons have three seconds for their whole end.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(1);
// A Unix socket is for its owner and its group, whatever the umask says.
constexpr mode_t kSocketMode = 0660;

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Address& address, const std::vector<grpc::Service*>& services,
    ReactorRegistry& reactors, const Keepalive& keepalive) {
  RETURN_IF_ERROR(CheckUnixSocketFree(address));
  // gRPC only says that it failed, and logs why in a form of its own.
  RETURN_IF_ERROR(TryListen(address));
  const bool is_unix = address.kind == AddressKind::kUnix;
  Address unpublished = address;
  if (is_unix) unpublished.path = UnpublishedPath(address.path);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ConfigureServer(builder, keepalive);
  int port = 0;
  builder.AddListeningPort(GrpcTarget(unpublished),
                           grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    RETURN_IF_ERROR(TryListen(address));
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address.ToString(), ": gRPC's log says why"));
  }
  std::optional<PublishedSocket> socket;
  if (is_unix) {
    if (chmod(unpublished.path.c_str(), kSocketMode) != 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot set the mode of ", address.path, ": ", std::strerror(errno)));
    }
    ASSIGN_OR_RETURN(PublishedSocket published,
                     PublishedSocket::Publish(unpublished.path, address));
    socket.emplace(std::move(published));
  }
  Address bound = address;
  if (!is_unix) bound.port = port;
  auto result = std::unique_ptr<RpcServer>(
      new RpcServer(bound, reactors, std::move(server), std::move(socket)));
  result->SetServing("readiness", false);
  result->SetServing("liveness", true);
  return result;
}

RpcServer::RpcServer(const Address& address, ReactorRegistry& reactors,
                     std::unique_ptr<grpc::Server> server,
                     std::optional<PublishedSocket> socket)
    : address_(address),
      reactors_(reactors),
      server_(std::move(server)),
      socket_(std::move(socket)) {}

RpcServer::~RpcServer() {
  // First: a successor can take the path while this one ends.
  socket_.reset();
  reactors_.CloseAll(absl::UnavailableError(
      absl::StrCat(address_.ToString(), " is shutting down")));
  server_->Shutdown(DeadlineAfter(kShutdownTimeout));
  server_->Wait();
  server_.reset();
  CHECK_EQ(reactors_.size(), 0)
      << address_.ToString() << ": reactors outlive their server";
}

void RpcServer::SetServing(const std::string& name, bool serving) {
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    health->SetServingStatus(name, serving);
  }
}

}  // namespace penstock::common::rpc
