// This rank's ends of the edges: which memory and which event each message
// uses.
//
// An event serves one message at a time and may be pending long after its
// command was enqueued, so each edge has a ring of them: as many as a step has
// messages and the receiver has slots (the sender: buffers). When an event's
// turn comes again, its message before was passed by the compute stream, which
// the engine has awaited at the latest at the end of the step before. (While
// evaluating, the engine awaits the stream after every M commands.)
#ifndef PENSTOCK_SERVER_EXECUTOR_EDGE_PORTS_H_
#define PENSTOCK_SERVER_EXECUTOR_EDGE_PORTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "server/device/tensor.h"
#include "server/executor/activation_stash.h"
#include "server/executor/stage_assignment.h"
#include "server/transport/transport.h"

namespace penstock::server::executor {

// Thread-compatible: confined to the engine thread. The events may be read from
// any thread while the ports live. REQUIRES: the transport is destroyed first,
// or every event done.
class EdgePorts {
 public:
  // Borrows the transport.
  static absl::StatusOr<std::unique_ptr<EdgePorts>> Create(
      transport::Transport& transport, const StageAssignment& assignment,
      int64_t epoch);

  // Messages are numbered from 0 again. REQUIRES: all messages of the program
  // before are enqueued.
  void BeginProgram(int64_t step);

  // Posts `into` for the edge's next message. First awaits the message that is
  // `capacity` before it, because a transport takes no more posts than that;
  // its consumer is already enqueued, so nothing could have run meanwhile.
  void Post(int edge, int micro_batch, const device::Tensor& into,
            device::Stream& after);
  // Done when message number `message` of this program is in its slot.
  // REQUIRES: it was posted.
  const device::Event& received(int edge, int message) const;

  // Index of the buffer of the next message to send, and the event after which
  // it may be written; null where nothing was sent from it yet.
  int next_buffer(int edge) const;
  const device::Event* buffer_free(int edge) const;
  // Sends `payload` as the next message.
  void Send(int edge, int micro_batch, const device::Tensor& payload,
            device::Stream& after);

 private:
  struct Port {
    transport::Edge edge;
    int window = 1;     // Receiver's slots or sender's buffers.
    int64_t first = 0;  // Number, in the epoch, of this program's message 0.
    int64_t next = 0;   // To post or to send.
    std::vector<std::unique_ptr<device::Event>> events;  // By number mod size.

    device::Event& event(int64_t number) const {
      return *events[number % static_cast<int64_t>(events.size())];
    }
  };

  EdgePorts(transport::Transport& transport, int64_t epoch)
      : transport_(transport), epoch_(epoch) {}

  transport::Transport& transport_;
  const int64_t epoch_;
  int64_t step_ = 0;
  std::vector<Port> ports_;  // As StageAssignment::edges.
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_EDGE_PORTS_H_
