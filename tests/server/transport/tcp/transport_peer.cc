// A real peer process for tests of dying peers: rank 1 of activation 0->1 and
// gradient 1->0.
//
//   transport_peer PARENT_ADDRESS MODE FLOATS
//
// Prints its listener's address, and "ready" once its edges stand. Then, by
// MODE: idle: waits to be killed. receive: posts a slot of FLOATS and stops
// itself (SIGSTOP). send: sends FLOATS and stops itself in the middle, for they
// do not fit into the sockets' buffers.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"

int main(int argc, char** argv) {
  using namespace penstock::testing;  // NOLINT: a test program
  CHECK_EQ(argc, 4);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string parent = argv[1], mode = argv[2];
  const size_t floats = std::strtoul(argv[3], nullptr, 10);
  const penstock::common::time::RealClock clock;
  auto listener = penstock::server::transport::tcp::Listener::Open(
      {}, clock, penstock::common::ids::SystemRandom());
  CHECK_OK(listener.status());
  std::printf("%s\n", (*listener)->address().c_str());
  std::fflush(stdout);
  auto transport = (*listener)->CreateTransport(
      OptionsOf(1, {{Activation(0), 0, 1}, {Gradient(1), 1, 0}},
                [&parent](int) { return parent; }));
  CHECK_OK(transport.status());
  CHECK_OK((*transport)->Connect(Soon()));
  std::printf("ready\n");
  std::fflush(stdout);
  InlineStream stream;
  Message message{.values = std::vector<float>(floats, 1.0f),
                  .done = (*transport)->CreateEvent().value()};
  if (mode == "receive") {
    (*transport)
        ->Receive(Activation(0), StepTag(0), message.tensor(), stream,
                  *message.done);
    raise(SIGSTOP);
  } else if (mode == "send") {
    (*transport)
        ->Send(Gradient(1), StepTag(0), message.tensor(), stream,
               *message.done);
    raise(SIGSTOP);
  }
  pause();
  return 0;
}
