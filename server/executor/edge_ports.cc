#include "server/executor/edge_ports.h"

#include <utility>

#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::executor {

absl::StatusOr<std::unique_ptr<EdgePorts>> EdgePorts::Create(
    transport::Transport& transport, const StageAssignment& assignment,
    int64_t epoch) {
  std::unique_ptr<EdgePorts> ports(new EdgePorts(transport, epoch));
  for (const AssignedEdge& edge : assignment.edges) {
    Port port;
    port.edge = edge.end.edge;
    port.window = edge.sends() ? edge.send_buffers : edge.end.capacity;
    for (int i = 0; i < assignment.micro_batches + port.window; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<device::Event> event,
                       transport.CreateEvent());
      port.events.push_back(std::move(event));
    }
    ports->ports_.push_back(std::move(port));
  }
  return ports;
}

void EdgePorts::BeginProgram(int64_t step) {
  step_ = step;
  for (Port& port : ports_) port.first = port.next;
}

void EdgePorts::Post(int edge, int micro_batch, const device::Tensor& into,
                     device::Stream& after) {
  Port& port = ports_[edge];
  const int64_t number = port.next++;
  if (number >= port.window) {
    // A failure shows where the message is consumed.
    port.event(number - port.window)
        .Await(absl::InfiniteFuture())
        .IgnoreError();
  }
  transport_.Receive(
      port.edge, {.epoch = epoch_, .step = step_, .micro_batch = micro_batch},
      into, after, port.event(number));
}

const device::Event& EdgePorts::received(int edge, int message) const {
  const Port& port = ports_[edge];
  CHECK(port.first + message < port.next)
      << ToString(port.edge) << ": message " << message << " is not posted";
  return port.event(port.first + message);
}

int EdgePorts::next_buffer(int edge) const {
  return ports_[edge].next % ports_[edge].window;
}

const device::Event* EdgePorts::buffer_free(int edge) const {
  const Port& port = ports_[edge];
  return port.next < port.window ? nullptr
                                 : &port.event(port.next - port.window);
}

void EdgePorts::Send(int edge, int micro_batch, const device::Tensor& payload,
                     device::Stream& after) {
  Port& port = ports_[edge];
  transport_.Send(port.edge,
                  {.epoch = epoch_, .step = step_, .micro_batch = micro_batch},
                  payload, after, port.event(port.next));
  ++port.next;
}

}  // namespace penstock::server::executor
