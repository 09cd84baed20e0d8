#include "server/transport/tcp/tcp_transport.h"

#include <utility>

#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::transport::tcp {

void TcpEvent::Bind(std::shared_ptr<Epoch> epoch) {
  common::sync::MutexLock lock(&mutex_);
  epoch_ = std::move(epoch);
}

absl::Status TcpEvent::Await(absl::Time deadline) const {
  std::shared_ptr<Epoch> epoch;
  {
    common::sync::MutexLock lock(&mutex_);
    epoch = epoch_;
  }
  return AwaitFor(epoch == nullptr ? common::sync::TimeoutTo(deadline)
                                   : epoch->Drive(*this, deadline));
}

absl::StatusOr<std::unique_ptr<TcpTransport>> TcpTransport::Create(
    std::shared_ptr<Epoch> epoch, const Deps& deps) {
  std::unique_ptr<TcpTransport> transport(
      new TcpTransport(std::move(epoch), deps));
  absl::Status opened;
  deps.loop.RunAndWait([&opened, &transport] { opened = transport->Open(); });
  RETURN_IF_ERROR(opened);
  return transport;
}

TcpTransport::TcpTransport(std::shared_ptr<Epoch> epoch, const Deps& deps)
    : epoch_(std::move(epoch)), deps_(deps) {}

TcpTransport::~TcpTransport() {
  Abort(absl::CancelledError("the transport was destroyed"));
  // Afterwards nothing on the loop thread knows this transport.
  deps_.loop.RunAndWait([this] {
    watch_.reset();
    diallers_.clear();
    for (const Edge& edge : accepting_) {
      deps_.acceptor.Remove(epoch_->options().epoch, edge);
    }
  });
}

absl::Status TcpTransport::Open() {
  const TransportOptions& options = epoch_->options();
  ASSIGN_OR_RETURN(
      watch_, deps_.loop.WatchFd(epoch_->ready_fd(), UV_READABLE, [this](int) {
        if (!epoch_->OnReadable()) watch_.reset();
      }));
  const auto on_connected = [this] { epoch_->NoteConnected(); };
  for (const auto& connection : epoch_->connections()) {
    const EdgeOptions& edge = connection->options();
    if (edge.role == EdgeRole::kTarget) {
      RETURN_IF_ERROR(deps_.acceptor.Add(options.epoch, edge.edge,
                                         {.connection = connection.get(),
                                          .secret = options.secret,
                                          .on_connected = on_connected}));
      accepting_.push_back(edge.edge);
    } else {
      ASSIGN_OR_RETURN(const SocketAddress address,
                       ParseSocketAddress(edge.peer_address));
      diallers_.push_back(std::make_unique<Dialler>(
          Dialler::Options{.connection = *connection,
                           .epoch = options.epoch,
                           .secret = options.secret,
                           .address = address,
                           .liveness = deps_.liveness,
                           .on_connected = on_connected},
          deps_.loop, deps_.random));
    }
  }
  return absl::OkStatus();
}

absl::Status TcpTransport::Connect(absl::Time deadline) {
  return epoch_->Connect(deadline);
}

std::vector<Edge> TcpTransport::Unconnected() const {
  std::vector<Edge> edges;
  for (const auto& connection : epoch_->connections()) {
    if (!connection->standing()) edges.push_back(connection->options().edge);
  }
  return edges;
}

absl::StatusOr<std::unique_ptr<device::Event>> TcpTransport::CreateEvent() {
  return std::make_unique<TcpEvent>(epoch_->clock());
}

std::shared_ptr<const device::Event> TcpTransport::ended() const {
  return std::shared_ptr<const device::Event>(epoch_, &epoch_->ended());
}

void TcpTransport::Send(const Edge& edge, const Tag& tag,
                        const device::Tensor& payload, device::Stream& after,
                        device::Event& done) {
  Begin(edge, EdgeRole::kSource, tag, payload, after, done);
}

void TcpTransport::Receive(const Edge& edge, const Tag& tag,
                           const device::Tensor& into, device::Stream& after,
                           device::Event& done) {
  Begin(edge, EdgeRole::kTarget, tag, into, after, done);
}

void TcpTransport::Begin(const Edge& edge, EdgeRole role, const Tag& tag,
                         const device::Tensor& tensor, device::Stream& after,
                         device::Event& done) {
  CHECK(tensor.contiguous()) << ToString(edge);
  Connection* connection = epoch_->Find(edge, role);
  CHECK(connection != nullptr) << ToString(edge) << " is no edge of this rank";
  auto* event = dynamic_cast<TcpEvent*>(&done);
  CHECK(event != nullptr) << ToString(edge)
                          << ": not an event of this transport's CreateEvent";
  auto operation = std::make_shared<Operation>();
  operation->tag = tag;
  operation->tensor = tensor;
  operation->done = event;
  event->Reset();
  event->Bind(epoch_);
  connection->Begin(operation);
  after.Call(
      [epoch = epoch_, connection, operation](const absl::Status& status) {
        epoch->Ready(*connection, operation, status);
      });
}

void TcpTransport::StepAside() { epoch_->StepAside(); }

Failure TcpTransport::failure() const { return epoch_->failure(); }

void TcpTransport::OnFailure(std::function<void(const Failure&)> callback) {
  epoch_->OnFailure(std::move(callback));
}

void TcpTransport::Abort(const absl::Status& cause) { epoch_->Abort(cause); }

absl::Status TcpTransport::Close(absl::Time deadline) {
  return epoch_->Close(deadline);
}

}  // namespace penstock::server::transport::tcp
