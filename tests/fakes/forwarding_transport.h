// A transport that passes everything on to another one: the base of those that
// change a single thing, to inject a fault at the seam.
#ifndef PENSTOCK_TESTS_FAKES_FORWARDING_TRANSPORT_H_
#define PENSTOCK_TESTS_FAKES_FORWARDING_TRANSPORT_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/transport/transport.h"

namespace penstock::tests::fakes {

// Thread-compatible, as a transport.
class ForwardingTransport : public server::transport::Transport {
 public:
  explicit ForwardingTransport(
      std::unique_ptr<server::transport::Transport> wrapped)
      : wrapped_(std::move(wrapped)) {}

  absl::Status Connect(absl::Time deadline) override {
    return wrapped_->Connect(deadline);
  }
  std::vector<server::transport::Edge> Unconnected() const override {
    return wrapped_->Unconnected();
  }
  absl::StatusOr<std::unique_ptr<server::device::Event>> CreateEvent()
      override {
    return wrapped_->CreateEvent();
  }
  std::shared_ptr<const server::device::Event> ended() const override {
    return wrapped_->ended();
  }
  void Send(const server::transport::Edge& edge,
            const server::transport::Tag& tag,
            const server::device::Tensor& payload,
            server::device::Stream& after,
            server::device::Event& done) override {
    wrapped_->Send(edge, tag, payload, after, done);
  }
  void Receive(const server::transport::Edge& edge,
               const server::transport::Tag& tag,
               const server::device::Tensor& into,
               server::device::Stream& after,
               server::device::Event& done) override {
    wrapped_->Receive(edge, tag, into, after, done);
  }
  void StepAside() override { wrapped_->StepAside(); }
  server::transport::Failure failure() const override {
    return wrapped_->failure();
  }
  void OnFailure(std::function<void(const server::transport::Failure&)>
                     callback) override {
    wrapped_->OnFailure(std::move(callback));
  }
  void Abort(const absl::Status& cause) override { wrapped_->Abort(cause); }
  absl::Status Close(absl::Time deadline) override {
    return wrapped_->Close(deadline);
  }

 protected:
  server::transport::Transport& wrapped() { return *wrapped_; }
  const server::transport::Transport& wrapped() const { return *wrapped_; }

 private:
  const std::unique_ptr<server::transport::Transport> wrapped_;
};

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_FORWARDING_TRANSPORT_H_
