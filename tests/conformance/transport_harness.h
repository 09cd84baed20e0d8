// What the transport conformance tests share: backends under test, streams, and
// one rank's view with short names. A new backend adds one Backend to the lists
// in transport_backends.cc.
#ifndef PENSTOCK_TESTS_CONFORMANCE_TRANSPORT_HARNESS_H_
#define PENSTOCK_TESTS_CONFORMANCE_TRANSPORT_HARNESS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "gtest/gtest.h"
#include "server/device/device.h"
#include "server/device/unmodelled_stream.h"
#include "server/transport/transport.h"

namespace penstock::testing {

// An edge between two ranks of a test.
struct Link {
  server::transport::Edge edge;
  int from = 0;
  int to = 0;
  int capacity = 1;
};

// Ranks that can reach each other; outlives their transports.
class World {
 public:
  virtual ~World() = default;
  // The transport of `rank`, named "rank-N", with its ends of `links`.
  virtual std::unique_ptr<server::transport::Transport> Join(
      int rank, const std::vector<Link>& links) = 0;
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<World>()> create;
};
std::vector<Backend> TransportBackends();

inline constexpr int64_t kEpoch = 7;

// The options that World::Join takes from the links; `address` gives the
// listener of a rank, where there are addresses.
server::transport::TransportOptions OptionsOf(
    int rank, const std::vector<Link>& links,
    const std::function<std::string(int rank)>& address);

// Runs everything at once, as the CPU device's streams do.
class InlineStream final : public server::device::UnmodelledStream {
 public:
  void Record(server::device::Event&) override {}
  void Wait(const server::device::Event& event) override;
  void Call(std::function<void(const absl::Status&)> function) override;
  absl::Status status() const override { return status_; }
  absl::Status Synchronize(absl::Time) override { return status_; }
  void Fail(const absl::Status& status) { status_ = status; }

 private:
  absl::Status status_;
};

// Runs its calls when the test says so. Thread-safe.
class HeldStream final : public server::device::UnmodelledStream {
 public:
  void Record(server::device::Event&) override {}
  void Wait(const server::device::Event&) override {}
  void Call(std::function<void(const absl::Status&)> function) override;
  absl::Status status() const override { return absl::OkStatus(); }
  absl::Status Synchronize(absl::Time) override { return absl::OkStatus(); }
  void RunAll(const absl::Status& status = absl::OkStatus());

 private:
  common::sync::Mutex mutex_;
  std::deque<std::function<void(const absl::Status&)>> calls_
      ABSL_GUARDED_BY(mutex_);
};

// A message under way: its memory and its completion.
struct Message {
  std::vector<float> values;
  std::unique_ptr<server::device::Event> done;

  server::device::Tensor tensor();
  // Waits long enough for every machine.
  absl::Status Await() const;
  // Still pending after a moment?
  bool StaysPending() const;
};

// One rank.
class Rank {
 public:
  Rank(World& world, int rank, const std::vector<Link>& links)
      : transport_(world.Join(rank, links)) {}

  std::unique_ptr<Message> Send(const server::transport::Edge& edge,
                                int64_t step, std::vector<float> values);
  // A slot of `count` elements.
  std::unique_ptr<Message> Receive(const server::transport::Edge& edge,
                                   int64_t step, size_t count);

  server::transport::Transport& operator*() { return *transport_; }
  server::transport::Transport* operator->() { return transport_.get(); }
  void Destroy() { transport_.reset(); }
  InlineStream& stream() { return stream_; }

 private:
  std::unique_ptr<server::transport::Transport> transport_;
  InlineStream stream_;
};

server::transport::Tag StepTag(int64_t step);
server::transport::Edge Activation(int from);  // from -> from + 1
server::transport::Edge Gradient(int from);    // from -> from - 1
absl::Time Soon();  // A deadline that no correct code reaches.

class TransportTest : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<World> world_ = GetParam().create();
};

}  // namespace penstock::testing

#define PENSTOCK_FOR_EVERY_TRANSPORT(suite)                                 \
  INSTANTIATE_TEST_SUITE_P(                                                 \
      Backends, suite,                                                      \
      ::testing::ValuesIn(::penstock::testing::TransportBackends()),        \
      [](const ::testing::TestParamInfo<::penstock::testing::Backend>& i) { \
        return i.param.name;                                                \
      })

#endif  // PENSTOCK_TESTS_CONFORMANCE_TRANSPORT_HARNESS_H_
