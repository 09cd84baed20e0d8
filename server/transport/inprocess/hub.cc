#include "server/transport/inprocess/hub.h"

#include <utility>

#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "server/device/host_event.h"
#include "server/transport/inprocess/exchange.h"

namespace penstock::server::transport::inprocess {
namespace {

// Thread-compatible, as its interface says.
class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Exchange> exchange, int64_t epoch,
                     const common::time::Clock* clock,
                     std::unique_ptr<Member> member)
      : exchange_(std::move(exchange)),
        epoch_(epoch),
        clock_(clock),
        member_(std::move(member)) {}
  ~InProcessTransport() override { exchange_->Leave(*member_); }

  absl::Status Connect(absl::Time deadline) override {
    return exchange_->Connect(*member_, deadline);
  }
  std::vector<Edge> Unconnected() const override {
    return exchange_->Unconnected(*member_);
  }
  absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() override {
    return NewEvent(clock_);
  }
  std::shared_ptr<const device::Event> ended() const override {
    return member_->ended;
  }
  void Send(const Edge& edge, const Tag& tag, const device::Tensor& payload,
            device::Stream& after, device::Event& done) override {
    Begin(edge, EdgeRole::kSource, tag, payload, after, done);
  }
  void Receive(const Edge& edge, const Tag& tag, const device::Tensor& into,
               device::Stream& after, device::Event& done) override {
    Begin(edge, EdgeRole::kTarget, tag, into, after, done);
  }
  void StepAside() override {}
  Failure failure() const override { return exchange_->failure(*member_); }
  void OnFailure(std::function<void(const Failure&)> callback) override {
    exchange_->SetOnFailure(*member_, std::move(callback));
  }
  void Abort(const absl::Status& cause) override {
    exchange_->Abort(*member_, cause);
  }
  absl::Status Close(absl::Time deadline) override {
    return exchange_->Close(*member_, deadline);
  }

 private:
  void Begin(const Edge& edge, EdgeRole role, const Tag& tag,
             const device::Tensor& tensor, device::Stream& after,
             device::Event& done) {
    CHECK(tensor.contiguous()) << ToString(edge);
    auto operation = std::make_shared<Operation>();
    operation->tag = tag;
    operation->tensor = tensor;
    operation->done = dynamic_cast<device::HostEvent*>(&done);
    CHECK(operation->done != nullptr)
        << ToString(edge) << ": not an event of this transport's CreateEvent";
    Channel& channel = FindOrDie(edge);
    exchange_->Begin(*member_, channel, role, operation);
    after.Call([exchange = exchange_, &channel,
                operation](const absl::Status& status) {
      exchange->Ready(channel, operation, status);
    });
  }

  Channel& FindOrDie(const Edge& edge) const {
    Channel* channel = exchange_->Find(epoch_, edge);
    CHECK(channel != nullptr) << ToString(edge) << " is no edge of this rank";
    return *channel;
  }

  const std::shared_ptr<Exchange> exchange_;
  const int64_t epoch_;
  const common::time::Clock* const clock_;  // May be null.
  const std::unique_ptr<Member> member_;
};

}  // namespace

Hub::Hub(const HubOptions& options)
    : clock_(options.clock), exchange_(std::make_shared<Exchange>(options)) {}

Hub::~Hub() { exchange_->Stop(); }

absl::StatusOr<std::unique_ptr<Transport>> Hub::Join(
    const std::string& name, const TransportOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Member> member,
                   exchange_->Join(name, options));
  return std::make_unique<InProcessTransport>(exchange_, options.epoch, clock_,
                                              std::move(member));
}

}  // namespace penstock::server::transport::inprocess
