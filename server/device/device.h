// A device: its memory, its streams and its events. Math is apart (ops.h).
//
// Model and executor are written once against these classes and never ask
// which device they run on. Work is *enqueued* on a stream and runs in the
// stream's order, at once (CPU) or later (GPU, tests/fakes/async_device). What
// one stream produces and another consumes needs an event between them:
//
//   producer.Record(*event);   // after the producing work
//   consumer.Wait(*event);     // before the consuming work
//
// A stream that waits on a failed event fails: what is enqueued later is
// skipped, and status() says why. A failed stream stays failed: the epoch is
// over, and its streams are destroyed.
#ifndef PENSTOCK_SERVER_DEVICE_DEVICE_H_
#define PENSTOCK_SERVER_DEVICE_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/device/memory_usage.h"
#include "server/device/tensor.h"

namespace penstock::server::device {

class Ops;

// A point in a stream, or a completion that a transport signals (HostEvent in
// host_event.h). Thread-safe.
class Event {
 public:
  virtual ~Event() = default;

  // True once the point was passed, well or not. Never blocks.
  virtual bool Done() const = 0;

  // Blocks the calling thread until Done() or the deadline. OK, the failure
  // that the event carries, or DeadlineExceeded. An event that was never
  // recorded is done.
  virtual absl::Status Await(absl::Time deadline) const = 0;

  // When the point was passed, as far as somebody noted it: a completion may be
  // seen by a thread while the one that waits for it is busy. nullopt while
  // pending. Never blocks.
  virtual std::optional<common::time::MonotonicTime> done_at() const = 0;
};

// A queue of device work. Thread-compatible; the executor confines its streams
// to the engine thread, a transport its own to its loop.
class Stream {
 public:
  // Drains nothing: REQUIRES that the stream is idle or failed.
  virtual ~Stream() = default;

  // Marks `event` (made by the same device's CreateEvent) as pending until
  // everything enqueued before has run. An event may be recorded again.
  virtual void Record(Event& event) = 0;

  // What is enqueued later runs only after `event` is done. `event` may be any
  // device event of this device or a HostEvent, and must outlive the wait. On
  // an inline stream (CPU) this blocks the caller until the event is done; who
  // may abandon the wait is whoever can fail the event (Transport::Abort).
  virtual void Wait(const Event& event) = 0;

  // Runs `function` on some thread after everything enqueued before. It must
  // not block and must not use the device. Skipped on a failed stream, except
  // that it is then called with the stream's status.
  virtual void Call(std::function<void(const absl::Status&)> function) = 0;

  // Of a device that models time (virtual/): what was enqueued since the last
  // wait takes `time`, whatever it really takes, and what is enqueued later
  // runs after that. The stream fails with `stop`'s status where that fails
  // first: REQUIRES that it is pending or failed. Elsewhere work takes the time
  // that it takes, and this does nothing (unmodelled_stream.h).
  virtual void Occupy(absl::Duration time, const Event& stop) = 0;

  // How far that device's time has come with what is enqueued, for Call()s;
  // nullopt: there is no time but the clock's.
  virtual std::optional<common::time::MonotonicTime> modelled_now() const = 0;

  // OK, or the first failure seen so far. Never blocks.
  virtual absl::Status status() const = 0;

  // Blocks until all enqueued work has run; returns the stream's status, or
  // DeadlineExceeded.
  virtual absl::Status Synchronize(absl::Time deadline) = 0;
};

// Owned device memory, 64-byte aligned (256 on GPUs). Freed by the destructor.
// Thread-compatible.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() const = 0;
  virtual int64_t bytes() const = 0;
};

// Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  // "reference", "cpu", "virtual": the kinds of server/backends.cc.
  virtual absl::string_view kind() const = 0;

  // What decides the bits: device kind, ISA level, numerics version, kernel
  // table digest (docs/numerics.md), as "cpu-avx512-2-9f3a...".
  virtual std::string numerics_id() const = 0;

  // Contents are undefined; in debug and sanitizer builds filled with NaN
  // patterns so that reading them shows. ResourceExhausted with the bytes
  // wanted when there is no memory. 0 bytes is allowed.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes,
                                                           MemoryUse use) = 0;
  // What was allocated, by callers and by the device for its ops.
  virtual MemoryUsage memory() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;

  // Stream-ordered copies. The host side must stay as it is (copy in) or
  // untouched (copy out) until the stream has passed the copy, and is
  // kPinnedHost memory.
  virtual void CopyToDevice(Stream& stream, std::byte* device,
                            const std::byte* host, int64_t bytes) = 0;
  virtual void CopyToHost(Stream& stream, std::byte* host,
                          const std::byte* device, int64_t bytes) = 0;

  // The device's math; lives as long as the device.
  virtual Ops& ops() = 0;
};

}  // namespace penstock::server::device

#endif  // PENSTOCK_SERVER_DEVICE_DEVICE_H_
