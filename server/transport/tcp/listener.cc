#include "server/transport/tcp/listener.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "server/transport/tcp/acceptor.h"
#include "server/transport/tcp/epoch.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/handshake.h"
#include "server/transport/tcp/socket.h"
#include "server/transport/tcp/tcp_transport.h"

namespace penstock::server::transport::tcp {
namespace {

constexpr size_t kLeastSecretBytes = 16;

absl::Status Validate(const TransportOptions& options) {
  if (options.secret.size() < kLeastSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the epoch's secret has ", options.secret.size(),
                     " bytes; at least ", kLeastSecretBytes, " are needed"));
  }
  std::set<std::pair<Edge, EdgeRole>> seen;
  for (const EdgeOptions& edge : options.edges) {
    const std::string name = ToString(edge.edge);
    for (const int32_t stage :
         {edge.edge.source_stage, edge.edge.target_stage}) {
      if (stage < 0 || stage > kMaxStage) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": stage ", stage, " is not in [0, ", kMaxStage, "]"));
      }
    }
    if (edge.capacity < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": capacity ", edge.capacity, " is below 1"));
    }
    if (!seen.emplace(edge.edge, edge.role).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": the same end is given twice"));
    }
    if (edge.role == EdgeRole::kSource) {
      RETURN_IF_ERROR(ParseSocketAddress(edge.peer_address).status());
    }
  }
  return absl::OkStatus();
}

class ListenerOnLoop final : public Listener {
 public:
  ListenerOnLoop(std::string address, const common::time::Clock& clock,
                 const common::ids::RandomSource& random,
                 const LivenessOptions& liveness,
                 std::unique_ptr<EventLoop> loop,
                 std::unique_ptr<Acceptor> acceptor)
      : address_(std::move(address)),
        clock_(clock),
        random_(random),
        liveness_(liveness),
        loop_(std::move(loop)),
        acceptor_(std::move(acceptor)) {}

  ~ListenerOnLoop() override {
    loop_->RunAndWait([this] { acceptor_.reset(); });
  }

  std::string address() const override { return address_; }

  absl::StatusOr<std::unique_ptr<Transport>> CreateTransport(
      const TransportOptions& options) override {
    RETURN_IF_ERROR(Validate(options));
    ASSIGN_OR_RETURN(std::shared_ptr<Epoch> epoch,
                     Epoch::Create(options, *loop_, clock_));
    return TcpTransport::Create(std::move(epoch), {.loop = *loop_,
                                                   .acceptor = *acceptor_,
                                                   .random = random_,
                                                   .liveness = liveness_});
  }

 private:
  // Constant after construction.
  const std::string address_;
  const common::time::Clock& clock_;
  const common::ids::RandomSource random_;
  const LivenessOptions liveness_;
  // In dependency order; the acceptor is confined to the loop's thread.
  const std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(
    const ListenerOptions& options, const common::time::Clock& clock,
    const common::ids::RandomSource& random) {
  ASSIGN_OR_RETURN(const SocketAddress wanted,
                   ParseSocketAddress(options.address));
  ASSIGN_OR_RETURN(Fd socket, Listen(wanted));
  ASSIGN_OR_RETURN(const SocketAddress bound, LocalAddress(socket));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create());
  auto acceptor =
      std::make_unique<Acceptor>(std::move(socket), options, *loop, random);
  absl::Status started;
  loop->RunAndWait([&started, &acceptor] { started = acceptor->Start(); });
  RETURN_IF_ERROR(started);
  return std::make_unique<ListenerOnLoop>(ToString(bound), clock, random,
                                          options.liveness, std::move(loop),
                                          std::move(acceptor));
}

}  // namespace penstock::server::transport::tcp
