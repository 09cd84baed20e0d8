// The data plane: moves tensors along directed edges between virtual stages.
//
// An edge is (source stage, target stage, kind); each is a channel of its own,
// also where two ranks are neighbours twice. Messages of an edge are received
// in the order in which they were sent. Sends are rendezvous: a send is done
// when the receiver has it, and no byte of a payload leaves before the receiver
// posted a slot for it. Each message carries a tag and a digest of shape and
// type; a receive that gets another message than it asked for fails the edge
// with both tags in the error.
//
// Both calls are stream-ordered: they touch the payload only after what was
// enqueued on `after` before them has run, and later work of `after` does not
// wait for them. Completion is an event (CreateEvent) that any stream of the
// same device may wait on.
//
// The first failure of any edge fails the transport: every pending and later
// event fails with it, and from then on no payload is touched. The connections
// of the other edges stay until Abort() or the destructor, so that the death of
// one rank is not reported as the death of its neighbours by theirs.
//
// Thread-compatible: the engine thread sends and receives; Abort(), ended(),
// failure(), status() and Unconnected() may be called from any thread.
#ifndef PENSTOCK_SERVER_TRANSPORT_TRANSPORT_H_
#define PENSTOCK_SERVER_TRANSPORT_TRANSPORT_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids/edge.h"
#include "server/device/device.h"
#include "server/device/tensor.h"

namespace penstock::server::transport {

using common::ids::EdgeKind;

using Edge = common::ids::EdgeEnds;
using common::ids::ToString;  // "activation 0->1"

// What a message is about. Equal at both ends, or the edge fails.
struct Tag {
  int64_t epoch = 0;
  int64_t step = 0;
  int32_t micro_batch = 0;  // -1 on tied edges.

  friend auto operator<=>(const Tag&, const Tag&) = default;
};
std::string ToString(const Tag& tag);

// Of two messages with different element types or shapes, different; equal for
// equal ones, on every machine.
uint64_t FormDigest(const device::Tensor& tensor);

// This rank's end of an edge.
enum class EdgeRole { kSource, kTarget };

struct EdgeOptions {
  Edge edge;
  EdgeRole role = EdgeRole::kSource;
  // How many receives may be posted at once. Only the target's counts.
  int capacity = 1;
  std::string peer;          // The other rank's name, for messages.
  std::string peer_address;  // "host:port" of its data listener, if it has one.
};

// When the source of an edge hears that a message was received: in a moment,
// since one frame may acknowledge several messages, or at once, from a rank
// that has nothing else to do. Of slots that it is short of it hears at once
// with both. Of other ones that are posted it does with neither: its next
// message is answered with them.
enum class Acks { kDelayed, kImmediate };

// One rank's part in one epoch. An edge between two chunks of this rank is
// given twice, once in each role.
struct TransportOptions {
  int64_t epoch = 0;
  std::string secret;  // Known to the ranks of this epoch only.
  std::vector<EdgeOptions> edges;
  Acks acks = Acks::kDelayed;
};

// Why a transport has failed.
struct Failure {
  absl::Status status;  // OK: it has not.
  // The edge that failed first; none where no single edge did: Abort, and
  // Connect at its deadline.
  std::optional<Edge> edge;

  friend bool operator==(const Failure&, const Failure&) = default;
};

// Thread-compatible, with the exceptions above.
class Transport {
 public:
  // Aborts what is open; never blocks for longer than 1 s. Its events may
  // outlive it.
  virtual ~Transport() = default;

  // Blocks until every edge stands, which is worked at from the transport's
  // creation on. DeadlineExceeded names the edges that are missing, and why;
  // the transport has then failed. Send and Receive need not wait for this.
  virtual absl::Status Connect(absl::Time deadline) = 0;

  // The edges that Connect still waits for. Any thread.
  virtual std::vector<Edge> Unconnected() const = 0;

  // An event for Send and Receive to complete.
  virtual absl::StatusOr<std::unique_ptr<device::Event>> CreateEvent() = 0;

  // Pending while the transport works, then failed with what it has failed of,
  // or with Abort's cause. Whoever waits for it does meanwhile what one who
  // waits for a message does. May outlive the transport.
  virtual std::shared_ptr<const device::Event> ended() const = 0;

  // Sends `payload` (contiguous) on `edge`, of which this rank is the source.
  // `done` becomes pending now, and done when the receiver has taken the
  // message: until then the payload must stay as it is. Messages go in the
  // order of these calls, also when their streams run in another order. `done`
  // must live until it is done.
  virtual void Send(const Edge& edge, const Tag& tag,
                    const device::Tensor& payload, device::Stream& after,
                    device::Event& done) = 0;

  // Posts `into` (contiguous) for the next message of `edge`, of which this
  // rank is the target. At most the edge's capacity may be posted at once
  // (CHECK). `done` becomes pending now, and done when the payload is there.
  virtual void Receive(const Edge& edge, const Tag& tag,
                       const device::Tensor& into, device::Stream& after,
                       device::Event& done) = 0;

  // The thread that sends and receives turns to something else for long. Where
  // it moves bytes while it waits, others do so from now on, until it waits for
  // a message again; without this call they leave it some time to come back.
  virtual void StepAside() = 0;

  // The first failure. Its status names the edge, the peer and what happened
  // ("activation 0->1: peer stage-1 (127.0.0.1:4711) closed the connection").
  virtual Failure failure() const = 0;
  absl::Status status() const { return failure().status; }

  // Calls `callback` once, from some thread, when an edge is the first to fail
  // (not for Abort, Close and Connect's deadline), also where it has failed
  // already. Set before the first Send or Receive. It must not block.
  virtual void OnFailure(std::function<void(const Failure&)> callback) = 0;

  // Fails every pending and later event with `cause` and drops all
  // connections. Frees every waiter within 1 s. Any thread; idempotent.
  virtual void Abort(const absl::Status& cause) = 0;

  // The orderly end: waits until what was sent has been received, says goodbye
  // on every edge and waits for the peers'. REQUIRES: no receive is pending.
  // DeadlineExceeded when a peer does not receive or answer; status() when the
  // transport has failed. Later events fail with FailedPrecondition.
  virtual absl::Status Close(absl::Time deadline) = 0;
};

}  // namespace penstock::server::transport

#endif  // PENSTOCK_SERVER_TRANSPORT_TRANSPORT_H_
