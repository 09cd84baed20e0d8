// The transports under test.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "server/transport/inprocess/hub.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"

namespace penstock::testing {
namespace {

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
  std::unique_ptr<server::transport::Transport> Join(
      int rank, const std::vector<Link>& links) override {
    auto transport = ListenerOf(rank).CreateTransport(OptionsOf(
        rank, links, [this](int peer) { return ListenerOf(peer).address(); }));
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

  common::time::RealClock clock_;
  std::map<int, std::unique_ptr<server::transport::tcp::Listener>> listeners_;
};

}  // namespace

std::vector<Backend> TransportBackends() {
  return {
      {"InProcess",
       [] {
         return std::make_unique<InProcessWorld>(
             server::transport::inprocess::HubOptions());
       }},
      {"InProcessDelayed",
       [] {
         return std::make_unique<InProcessWorld>(
             server::transport::inprocess::HubOptions{
                 .max_delay = absl::Microseconds(300), .seed = 11});
       }},
      {"Tcp", [] { return std::make_unique<TcpWorld>(); }},
  };
}

}  // namespace penstock::testing
