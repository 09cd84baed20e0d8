// A transport that leaves out one kind of dependency, as if the executor had:
// the fault is at the seam, the executor under test is untouched.
#ifndef PENSTOCK_TESTS_SERVER_EXECUTOR_LEAKY_TRANSPORT_H_
#define PENSTOCK_TESTS_SERVER_EXECUTOR_LEAKY_TRANSPORT_H_

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "common/time/clock.h"
#include "server/device/device.h"
#include "server/transport/transport.h"
#include "tests/fakes/forwarding_transport.h"

namespace penstock::testing {

enum class Leak {
  kNone,
  kStreamWait,  // A stream's wait for the completion of a message.
  kHostWait,    // The engine's wait for it.
  kAfter,       // The transport does not stay behind the stream.
};

// Which messages leak: those of `kind` at this end.
struct LeakSite {
  Leak leak = Leak::kNone;
  server::transport::EdgeKind kind = server::transport::EdgeKind::kActivation;
  server::transport::EdgeRole role = server::transport::EdgeRole::kSource;
};

// Thread-compatible, as a transport.
class LeakyTransport final : public tests::fakes::ForwardingTransport {
 public:
  // `idle`: a stream on which nothing else runs.
  LeakyTransport(const LeakSite& site,
                 std::unique_ptr<server::transport::Transport> wrapped,
                 std::unique_ptr<server::device::Stream> idle)
      : ForwardingTransport(std::move(wrapped)),
        site_(site),
        idle_(std::move(idle)) {}

  absl::StatusOr<std::unique_ptr<server::device::Event>> CreateEvent()
      override {
    auto event = wrapped().CreateEvent();
    if (!event.ok()) return event.status();
    return std::make_unique<LeakyEvent>(*std::move(event));
  }
  void Send(const server::transport::Edge& edge,
            const server::transport::Tag& tag,
            const server::device::Tensor& payload,
            server::device::Stream& after,
            server::device::Event& done) override {
    const bool leaks = Leaks(edge, server::transport::EdgeRole::kSource);
    wrapped().Send(edge, tag, payload, After(leaks, after), Use(leaks, done));
  }
  void Receive(const server::transport::Edge& edge,
               const server::transport::Tag& tag,
               const server::device::Tensor& into,
               server::device::Stream& after,
               server::device::Event& done) override {
    const bool leaks = Leaks(edge, server::transport::EdgeRole::kTarget);
    wrapped().Receive(edge, tag, into, After(leaks, after), Use(leaks, done));
  }

 private:
  class LeakyEvent final : public server::device::Event {
   public:
    explicit LeakyEvent(std::unique_ptr<server::device::Event> wrapped)
        : wrapped_(std::move(wrapped)) {}
    bool Done() const override { return wrapped_->Done(); }
    // The thread that sends and receives is the engine; others are streams.
    absl::Status Await(absl::Time deadline) const override {
      const bool host = std::this_thread::get_id() == engine_;
      if (leak_ == (host ? Leak::kHostWait : Leak::kStreamWait)) {
        return absl::OkStatus();
      }
      return wrapped_->Await(deadline);
    }
    std::optional<common::time::MonotonicTime> done_at() const override {
      return wrapped_->done_at();
    }

   private:
    friend class LeakyTransport;
    const std::unique_ptr<server::device::Event> wrapped_;
    Leak leak_ = Leak::kNone;
    std::thread::id engine_;
  };

  bool Leaks(const server::transport::Edge& edge,
             server::transport::EdgeRole role) const {
    return edge.kind == site_.kind && role == site_.role;
  }
  server::device::Stream& After(bool leaks, server::device::Stream& after) {
    return leaks && site_.leak == Leak::kAfter ? *idle_ : after;
  }
  server::device::Event& Use(bool leaks, server::device::Event& done) {
    auto& event = static_cast<LeakyEvent&>(done);
    event.leak_ = leaks ? site_.leak : Leak::kNone;
    event.engine_ = std::this_thread::get_id();
    return *event.wrapped_;
  }

  const LeakSite site_;
  const std::unique_ptr<server::device::Stream> idle_;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_EXECUTOR_LEAKY_TRANSPORT_H_
