#include "tests/conformance/transport_harness.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::testing {

using server::transport::Edge;
using server::transport::EdgeKind;
using server::transport::EdgeRole;
using server::transport::Tag;

server::transport::TransportOptions OptionsOf(
    int rank, const std::vector<Link>& links,
    const std::function<std::string(int rank)>& address) {
  server::transport::TransportOptions options{.epoch = kEpoch,
                                              .secret = std::string(32, 's')};
  for (const Link& link : links) {
    if (link.from == rank) {
      options.edges.push_back({.edge = link.edge,
                               .role = EdgeRole::kSource,
                               .capacity = link.capacity,
                               .peer = absl::StrCat("rank-", link.to),
                               .peer_address = address(link.to)});
    }
    if (link.to == rank) {
      options.edges.push_back({.edge = link.edge,
                               .role = EdgeRole::kTarget,
                               .capacity = link.capacity,
                               .peer = absl::StrCat("rank-", link.from),
                               .peer_address = address(link.from)});
    }
  }
  return options;
}

void InlineStream::Wait(const server::device::Event& event) {
  if (!status_.ok()) return;
  status_ = event.Await(absl::InfiniteFuture());
}

void InlineStream::Call(std::function<void(const absl::Status&)> function) {
  function(status_);
}

void HeldStream::Call(std::function<void(const absl::Status&)> function) {
  common::sync::MutexLock lock(&mutex_);
  calls_.push_back(std::move(function));
}

void HeldStream::RunAll(const absl::Status& status) {
  std::deque<std::function<void(const absl::Status&)>> calls;
  {
    common::sync::MutexLock lock(&mutex_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) call(status);
}

server::device::Tensor Message::tensor() {
  return server::device::Tensor(
      values.data(), server::device::DType::kF32,
      server::device::Shape({static_cast<int64_t>(values.size())}));
}

absl::Status Message::Await() const { return done->Await(Soon()); }

bool Message::StaysPending() const {
  return absl::IsDeadlineExceeded(
      done->Await(absl::Now() + absl::Milliseconds(20)));
}

std::unique_ptr<Message> Rank::Send(const Edge& edge, int64_t step,
                                    std::vector<float> values) {
  auto message = std::make_unique<Message>();
  message->values = std::move(values);
  message->done = std::move(transport_->CreateEvent()).value();
  transport_->Send(edge, StepTag(step), message->tensor(), stream_,
                   *message->done);
  return message;
}

std::unique_ptr<Message> Rank::Receive(const Edge& edge, int64_t step,
                                       size_t count) {
  auto message = std::make_unique<Message>();
  message->values.assign(count, -1.0f);
  message->done = std::move(transport_->CreateEvent()).value();
  transport_->Receive(edge, StepTag(step), message->tensor(), stream_,
                      *message->done);
  return message;
}

Tag StepTag(int64_t step) { return {.epoch = kEpoch, .step = step}; }
Edge Activation(int from) { return {from, from + 1, EdgeKind::kActivation}; }
Edge Gradient(int from) { return {from, from - 1, EdgeKind::kGradient}; }
absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

}  // namespace penstock::testing
