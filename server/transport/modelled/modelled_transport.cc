#include "server/transport/modelled/modelled_transport.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/transport/modelled/modelled_event.h"

namespace penstock::server::transport::modelled {
namespace {

// Thread-compatible, as its interface says.
class ModelledTransport final : public Transport {
 public:
  ModelledTransport(std::unique_ptr<Transport> carrier, const Wire& wire,
                    const common::time::Clock& clock)
      : wire_(wire), clock_(clock), carrier_(std::move(carrier)) {}

  absl::Status Connect(absl::Time deadline) override {
    return carrier_->Connect(deadline);
  }
  std::vector<Edge> Unconnected() const override {
    return carrier_->Unconnected();
  }
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override {
    ASSIGN_OR_RETURN(std::unique_ptr<device::Event> delivered,
                     carrier_->CreateEvent());
    return std::make_unique<ModelledEvent>(std::move(delivered));
  }
  std::shared_ptr<const device::Event> ended() const override {
    return carrier_->ended();
  }
  void Send(const Edge& edge, const Tag& tag, const device::Tensor& payload,
            device::Stream& after, device::Event& done) override {
    ModelledEvent& event = Begin(edge, done);
    carrier_->Send(edge, tag, payload, after, event.delivered());
    event.Bind(WireOf(edge, EdgeRole::kSource), payload.bytes());
  }
  void Receive(const Edge& edge, const Tag& tag, const device::Tensor& into,
               device::Stream& after, device::Event& done) override {
    ModelledEvent& event = Begin(edge, done);
    carrier_->Receive(edge, tag, into, after, event.delivered());
    event.Bind(WireOf(edge, EdgeRole::kTarget), into.bytes());
  }
  void StepAside() override { carrier_->StepAside(); }
  Failure failure() const override { return carrier_->failure(); }
  void OnFailure(std::function<void(const Failure&)> callback) override {
    carrier_->OnFailure(std::move(callback));
  }
  void Abort(const absl::Status& cause) override { carrier_->Abort(cause); }
  absl::Status Close(absl::Time deadline) override {
    RETURN_IF_ERROR(carrier_->Close(deadline));
    for (const auto& [end, wire] : wires_) {
      const auto last = wire->LastArrival();
      CHECK(last.has_value()) << ToString(end.first) << ": closed too early";
      const absl::Duration left = *last - clock_.Monotonic();
      const absl::Time until = std::min(deadline, clock_.Now() + left);
      if (left > absl::ZeroDuration()) {
        carrier_->ended()->Await(until).IgnoreError();
      }
    }
    return carrier_->status();
  }

 private:
  static ModelledEvent& Begin(const Edge& edge, device::Event& done) {
    auto* const event = dynamic_cast<ModelledEvent*>(&done);
    CHECK(event != nullptr)
        << ToString(edge) << ": not an event of this transport's CreateEvent";
    event->Release();
    return *event;
  }
  const std::shared_ptr<EdgeWire>& WireOf(const Edge& edge, EdgeRole role) {
    std::shared_ptr<EdgeWire>& wire = wires_[{edge, role}];
    if (wire == nullptr) {
      wire = std::make_shared<EdgeWire>(wire_, clock_, carrier_->ended());
    }
    return wire;
  }

  const Wire wire_;
  const common::time::Clock& clock_;
  std::map<std::pair<Edge, EdgeRole>, std::shared_ptr<EdgeWire>> wires_;
  const std::unique_ptr<Transport> carrier_;
};

}  // namespace

std::unique_ptr<Transport> ModelTransfers(std::unique_ptr<Transport> carrier,
                                          const Wire& wire,
                                          const common::time::Clock& clock) {
  return std::make_unique<ModelledTransport>(std::move(carrier), wire, clock);
}

}  // namespace penstock::server::transport::modelled
