// The rules of an edge once its connection stands: which frames may come and
// go, which payload belongs where, and when a message is complete. No sockets,
// threads or locks: Connection (connection.h) moves the bytes and holds the
// lock; unit tests and the fuzz target drive these classes directly.
#ifndef PENSTOCK_SERVER_TRANSPORT_TCP_PROTOCOL_H_
#define PENSTOCK_SERVER_TRANSPORT_TCP_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/time/clock.h"
#include "server/transport/operation.h"
#include "server/transport/tcp/frame.h"
#include "server/transport/transport.h"

namespace penstock::server::transport::tcp {

// A frame to write, and the payload behind it.
struct Outgoing {
  FrameBytes header;
  absl::Span<const std::byte> payload;
};

// One end of an edge. Thread-compatible: its connection's lock guards it.
class Protocol {
 public:
  virtual ~Protocol() = default;

  // Appends an operation. It counts once `ready` is set.
  void Add(std::shared_ptr<Operation> operation);
  // Signals all operations with `status` and forgets them.
  void FailAll(const absl::Status& status);
  size_t pending() const { return operations_.size(); }

  // The next frame to write, if there is one now. Its payload stays valid until
  // OnWritten(), or FailAll().
  virtual std::optional<Outgoing> Next() = 0;
  // The frame of the last Next() has been written whole.
  virtual void OnWritten() = 0;

  // When what is read from now on came, as far as somebody noted it before it
  // was read. Whoever reads says so before each read; and since messages are
  // completed within OnFrame and OnPayload only, their events tell this time.
  void NoteArrival(std::optional<common::time::MonotonicTime> at) {
    arrival_ = at;
  }
  // Where the payload of the next message will go: a reader may put what
  // follows the header there before it has seen the header.
  virtual absl::Span<std::byte> Slot() const = 0;
  // A frame has come. Returns where its payload goes (empty: it has none, then
  // OnPayload is not called unless the frame is a message). Errors end the
  // edge: DataLoss for what no correct peer sends, Internal for the wrong
  // message, Unavailable for a goodbye at the wrong time.
  virtual absl::StatusOr<absl::Span<std::byte>> OnFrame(const Frame& frame) = 0;
  // The payload of the message has been received whole.
  virtual void OnPayload() = 0;

  // How much the peer needs the frame that Next() would give: one word of what
  // was received can cover several messages.
  enum class Urgency { kNone, kMayWait, kNow };
  virtual Urgency urgency() const = 0;

  // Asks for the orderly end: a goodbye follows what is pending.
  void SayGoodbye() { goodbye_wanted_ = true; }
  bool goodbye_wanted() const { return goodbye_wanted_; }
  // Both goodbyes were said.
  bool closed() const { return goodbye_written_ && peer_goodbye_; }
  bool peer_goodbye() const { return peer_goodbye_; }

  // What was under way, for the error when the connection breaks: "while
  // nothing was under way", "in the middle of sending ...".
  virtual std::string Describe() const = 0;

 protected:
  void CompleteFront();
  // The goodbye, when it is due.
  std::optional<Outgoing> NextGoodbye();
  absl::Status OnGoodbye();

  std::deque<std::shared_ptr<Operation>> operations_;
  std::optional<common::time::MonotonicTime> arrival_;
  bool goodbye_wanted_ = false;
  bool goodbye_started_ = false;
  bool goodbye_written_ = false;
  bool peer_goodbye_ = false;
};

// The sending end: messages go out against grants and are complete when the
// target says that it has received them. Thread-compatible.
class SourceProtocol final : public Protocol {
 public:
  std::optional<Outgoing> Next() override;
  void OnWritten() override;
  // A source receives no payload: no slot, and OnPayload is never called.
  absl::Span<std::byte> Slot() const override { return {}; }
  absl::StatusOr<absl::Span<std::byte>> OnFrame(const Frame& frame) override;
  void OnPayload() override;
  Urgency urgency() const override { return Urgency::kNow; }
  std::string Describe() const override;

 private:
  // All count messages since the connection stands:
  // received_ <= written_ <= started_ <= granted_. The operations in the queue
  // are those from received_ on.
  uint64_t granted_ = 0;
  uint64_t started_ = 0;
  uint64_t written_ = 0;
  uint64_t received_ = 0;
};

// The receiving end: grants a message for each posted slot, in order.
// Thread-compatible.
class TargetProtocol final : public Protocol {
 public:
  std::optional<Outgoing> Next() override;
  void OnWritten() override;
  absl::Span<std::byte> Slot() const override;
  absl::StatusOr<absl::Span<std::byte>> OnFrame(const Frame& frame) override;
  void OnPayload() override;
  // Now, when the source has used up half of the posted slots (three quarters
  // where messages are small), or waits for a goodbye.
  Urgency urgency() const override;
  std::string Describe() const override;

 private:
  // Of the messages since the connection stands, those that may be granted.
  uint64_t Grantable() const;

  // As the source last heard: told_granted_ >= told_received_.
  uint64_t told_granted_ = 0;
  uint64_t told_received_ = 0;
  uint64_t received_ = 0;
  size_t last_bytes_ = 0;   // Of the newest message.
  bool receiving_ = false;  // A header has come, its payload is not complete.
};

}  // namespace penstock::server::transport::tcp

#endif  // PENSTOCK_SERVER_TRANSPORT_TCP_PROTOCOL_H_
