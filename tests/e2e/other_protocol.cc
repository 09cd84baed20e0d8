// A coordinator of some other release: refuses every call as one does that
// speaks no protocol version of ours. Serves on argv[1] until it is killed;
// with argv[2], a line on that descriptor says that it does.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "common/rpc/grpc_status.h"
#include "common/status/error_details.h"

namespace penstock {
namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  Refusal() {
    Finish(common::rpc::ToGrpcStatus(common::status::WithReason(
        absl::FailedPreconditionError(
            "this coordinator speaks protocol 7 to 9; install the same release "
            "on both"),
        "PROTOCOL_VERSION_UNSUPPORTED")));
  }
  void OnDone() override { delete this; }
};

class RefusesAll final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Refusal;
  }
};

int Main(const char* address, int ready_fd) {
  RefusesAll service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  if (ready_fd >= 0 && write(ready_fd, "\n", 1) != 1) return 1;
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "penstock_other_protocol ADDRESS [READY_FD]\n");
    return 2;
  }
  return penstock::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : -1);
}
