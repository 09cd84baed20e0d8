#include "common/rpc/rpc_server.h"

#include <fcntl.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_settings.h"
#include "common/status/status_macros.h"

namespace penstock::common::rpc {
namespace {

constexpr absl::Duration kShutdownTimeout = absl::Seconds(2);
// A Unix socket is for its owner and its group, whatever the umask says.
constexpr mode_t kSocketMode = 0660;

// gRPC unlinks a Unix socket's path before it binds, also a living server's:
// whether somebody answers there is found out first.
absl::Status CheckFree(const Address& address) {
  if (address.kind != AddressKind::kUnix) return absl::OkStatus();
  struct stat info;
  if (lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(address.ToString(), ": the file exists and is no socket"));
  }
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("socket(): ", std::strerror(errno)));
  }
  const int connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  const int error = errno;
  close(fd);
  if (connected != 0 && error == ECONNREFUSED) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "address in use: another server answers on ", address.ToString()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Address& address, const std::vector<grpc::Service*>& services,
    ReactorRegistry& reactors) {
  RETURN_IF_ERROR(CheckFree(address));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  int port = 0;
  builder.AddListeningPort(address.ToString(),
                           grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    // gRPC tells the cause only to its log; a used port is by far the usual.
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", address.ToString(),
                     ": the address is in use or not ours"));
  }
  if (address.kind == AddressKind::kUnix &&
      chmod(address.path.c_str(), kSocketMode) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot set the mode of ", address.path, ": ", std::strerror(errno)));
  }
  Address bound = address;
  if (bound.kind == AddressKind::kTcp) bound.port = port;
  auto result = std::unique_ptr<RpcServer>(
      new RpcServer(bound, reactors, std::move(server)));
  result->SetServing("readiness", false);
  result->SetServing("liveness", true);
  return result;
}

RpcServer::RpcServer(const Address& address, ReactorRegistry& reactors,
                     std::unique_ptr<grpc::Server> server)
    : address_(address), reactors_(reactors), server_(std::move(server)) {}

RpcServer::~RpcServer() {
  reactors_.CloseAll(absl::UnavailableError(
      absl::StrCat(address_.ToString(), " is shutting down")));
  server_->Shutdown(DeadlineAfter(kShutdownTimeout));
  server_->Wait();
  server_.reset();
  if (address_.kind == AddressKind::kUnix) unlink(address_.path.c_str());
}

void RpcServer::SetServing(const std::string& name, bool serving) {
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    health->SetServingStatus(name, serving);
  }
}

}  // namespace penstock::common::rpc
