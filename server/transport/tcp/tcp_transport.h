// The Transport of one epoch over an Epoch's connections.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_TCP_TRANSPORT_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_TCP_TRANSPORT_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids/random.h"
#include "common/sync/mutex.h"
#include "server/device/host_event.h"
#include "server/transport/tcp/acceptor.h"
#include "server/transport/tcp/dialler.h"
#include "server/transport/tcp/epoch.h"
#include "server/transport/tcp/event_loop.h"
#include "server/transport/tcp/listener_options.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// Whoever waits for it moves its epoch's bytes meanwhile. Thread-safe.
class TcpEvent final : public device::HostEvent {
 public:
  using HostEvent::HostEvent;

  // The operation of this event belongs to `epoch`.
  void Bind(std::shared_ptr<Epoch> epoch);
  absl::Status Await(absl::Time deadline) const override;

 private:
  mutable common::sync::Mutex mutex_;
  std::shared_ptr<Epoch> epoch_ ABSL_GUARDED_BY(mutex_);
};

// Thread-compatible, as its interface says.
class TcpTransport final : public Transport {
 public:
  struct Deps {
    EventLoop& loop;
    Acceptor& acceptor;
    common::ids::RandomSource random;
    LivenessOptions liveness;
  };

  // AlreadyExists or InvalidArgument as Listener::CreateTransport.
  static absl::StatusOr<std::unique_ptr<TcpTransport>> Create(
      std::shared_ptr<Epoch> epoch, const Deps& deps);
  ~TcpTransport() override;

  absl::Status Connect(absl::Time deadline) override;
  std::vector<Edge> Unconnected() const override;
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override;
  std::shared_ptr<const device::Event> ended() const override;
  void Send(const Edge& edge, const Tag& tag, const device::Tensor& payload,
            device::Stream& after, device::Event& done) override;
  void Receive(const Edge& edge, const Tag& tag, const device::Tensor& into,
               device::Stream& after, device::Event& done) override;
  void StepAside() override;
  Failure failure() const override;
  void OnFailure(std::function<void(const Failure&)> callback) override;
  void Abort(const absl::Status& cause) override;
  absl::Status Close(absl::Time deadline) override;

 private:
  TcpTransport(std::shared_ptr<Epoch> epoch, const Deps& deps);
  // On the loop thread.
  absl::Status Open();
  void Begin(const Edge& edge, EdgeRole role, const Tag& tag,
             const device::Tensor& tensor, device::Stream& after,
             device::Event& done);

  const std::shared_ptr<Epoch> epoch_;
  const Deps deps_;

  // Confined to the loop thread.
  std::unique_ptr<Watch> watch_;
  std::vector<std::unique_ptr<Dialler>> diallers_;
  std::vector<Edge> accepting_;
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_TCP_TRANSPORT_H_
