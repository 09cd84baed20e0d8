// A device whose streams are really asynchronous, as a GPU's are, over the math
// of an inline device: what the executor and the model forget to order shows.
//
// Each stream is a queue on a thread of its own. Ops, copies and calls run
// there, some time after they were enqueued; the host may look at results only
// after it has waited. Two schedules bring out missing waits:
//
//   kRandom  a stream works whenever it can, with seeded random delays.
//   kLazy    a stream does nothing until somebody needs it: a stream or the
//            host waits for an event recorded on it, polls that event, or
//            synchronises; or a Call is enqueued. A missing wait then reads
//            what was not computed yet, every time.
//
// In the TSan build the ops' accesses to memory are visible, so that two of
// them without an event between them are reported as a race.
#ifndef PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_DEVICE_H_
#define PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_DEVICE_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/device/device.h"

namespace penstock::tests::fakes {

struct AsyncDeviceOptions {
  enum class Schedule { kRandom, kLazy };
  Schedule schedule = Schedule::kRandom;
  // Of the delays, which are kRandom's modelled run time of the work.
  uint32_t seed = 1;
  absl::Duration longest_delay = absl::Microseconds(100);
  // A fault: when it says so, the host's Await() of an event returns at once,
  // as if the caller had left it out. Events are numbered as they are created,
  // awaits of each from 0. Empty: never. Called by whoever awaits.
  std::function<bool(int event, int await)> drops_await;
};

// `wrapped` is an inline device (reference, cpu); the bits are its bits.
std::unique_ptr<server::device::Device> CreateAsyncDevice(
    const AsyncDeviceOptions& options,
    std::unique_ptr<server::device::Device> wrapped);

}  // namespace penstock::tests::fakes

#endif  // PENSTOCK_TESTS_FAKES_ASYNC_DEVICE_ASYNC_DEVICE_H_
