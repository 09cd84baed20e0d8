// The wire to a coordinator that the test plays.
#ifndef PENSTOCK_TESTS_SERVER_SERVICE_FAKE_COORDINATOR_LINK_H_
#define PENSTOCK_TESTS_SERVER_SERVICE_FAKE_COORDINATOR_LINK_H_

#include <utility>

#include "server/service/coordinator_link.h"
#include "tests/server/service/recorded.h"

namespace penstock::testing {

// Thread-safe. Says nothing by itself: the test takes what was asked and
// answers through the callbacks, on its own thread.
class FakeCoordinatorLink final : public server::service::CoordinatorLink {
 public:
  struct Stream {
    v1::StageMessage hello;
    Listener listener;
  };
  struct Closed {};

  void Register(const v1::RegisterStageRequest&, absl::Duration,
                Registered done) override {
    registrations.Put(std::move(done));
  }
  void OpenStream(const v1::StageMessage& hello, Listener listener) override {
    streams.Put({hello, std::move(listener)});
  }
  void Send(v1::StageMessage message) override { sent.Put(std::move(message)); }
  void CloseStream() override { closes.Put({}); }
  void CancelStream() override { cancels.Put({}); }

  Recorded<Registered> registrations;
  Recorded<Stream> streams;
  Recorded<v1::StageMessage> sent;
  Recorded<Closed> closes;
  Recorded<Closed> cancels;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_SERVER_SERVICE_FAKE_COORDINATOR_LINK_H_
