// The transports under test.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "server/transport/inprocess/hub.h"
#include "server/transport/modelled/modelled_transport.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"

namespace penstock::testing {
namespace {

using server::transport::Acks;

class InProcessWorld final : public World {
 public:
  explicit InProcessWorld(
      const server::transport::inprocess::HubOptions& options)
      : hub_(options) {}

  std::unique_ptr<server::transport::Transport> Join(
      int rank, const std::vector<Link>& links) override {
    auto transport = hub_.Join(absl::StrCat("rank-", rank),
                               OptionsOf(rank, links, [](int) { return ""; }));
    CHECK_OK(transport.status());
    return *std::move(transport);
  }

 private:
  server::transport::inprocess::Hub hub_;
};

// Each rank has a listener of its own, as each daemon has.
class TcpWorld final : public World {
 public:
  explicit TcpWorld(Acks acks) : acks_(acks) {}

  std::unique_ptr<server::transport::Transport> Join(
      int rank, const std::vector<Link>& links) override {
    server::transport::TransportOptions options = OptionsOf(
        rank, links, [this](int peer) { return ListenerOf(peer).address(); });
    options.acks = acks_;
    auto transport = ListenerOf(rank).CreateTransport(options);
    CHECK_OK(transport.status());
    return *std::move(transport);
  }

 private:
  server::transport::tcp::Listener& ListenerOf(int rank) {
    auto& listener = listeners_[rank];
    if (listener == nullptr) {
      auto opened = server::transport::tcp::Listener::Open(
          {}, clock_, common::ids::SystemRandom());
      CHECK_OK(opened.status());
      listener = *std::move(opened);
    }
    return *listener;
  }

  const Acks acks_;
  common::time::RealClock clock_;
  std::map<int, std::unique_ptr<server::transport::tcp::Listener>> listeners_;
};

// Of the worlds that need one for their life.
const common::time::RealClock kClock;

// Another world's transports, with modelled transfers.
class ModelledWorld final : public World {
 public:
  explicit ModelledWorld(std::unique_ptr<World> carriers)
      : carriers_(std::move(carriers)) {}

  std::unique_ptr<server::transport::Transport> Join(
      int rank, const std::vector<Link>& links) override {
    return server::transport::modelled::ModelTransfers(
        carriers_->Join(rank, links),
        {.latency = absl::Microseconds(300), .seconds_per_byte = 1e-9}, kClock);
  }

 private:
  const std::unique_ptr<World> carriers_;
};

std::unique_ptr<World> Tcp(Acks acks) {
  return std::make_unique<TcpWorld>(acks);
}
std::unique_ptr<World> InProcess() {
  return std::make_unique<InProcessWorld>(
      server::transport::inprocess::HubOptions{.clock = &kClock});
}

}  // namespace

std::vector<Backend> TransportBackends() {
  return {
      {"InProcess", InProcess},
      {"InProcessDelayed",
       [] {
         return std::make_unique<InProcessWorld>(
             server::transport::inprocess::HubOptions{
                 .max_delay = absl::Microseconds(300), .seed = 11});
       }},
      {"InProcessModelled",
       [] { return std::make_unique<ModelledWorld>(InProcess()); }},
      {"Tcp", [] { return Tcp(Acks::kDelayed); }},
      {"TcpImmediateAcks", [] { return Tcp(Acks::kImmediate); }},
      {"TcpModelled",
       [] { return std::make_unique<ModelledWorld>(Tcp(Acks::kImmediate)); }},
  };
}

}  // namespace penstock::testing
