// The transports under test.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "server/transport/inprocess/hub.h"
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
  };
}

}  // namespace penstock::testing
