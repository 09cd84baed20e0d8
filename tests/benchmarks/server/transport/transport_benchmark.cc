// The tcp transport beside bare loops of blocking sockets, between two
// processes on loopback, in turns: a 64-byte round trip and one-way streams of
// 64 KiB, 1 MiB and 8 MiB messages; with idle cores and with every core
// computing at nice +10. Also what waiting costs.
//
// Two bare loops. "free": nothing but the bytes; the sender never hears that a
// message was received, and megabytes may lie in the sockets. "acked": what the
// transport promises, done by hand: a one-byte answer to each message and at
// most four messages under way, a connection for each direction.
//
// Usage: transport_benchmark [rounds [case]]. Medians over the rounds; only
// cases whose name contains `case`. Ratios above 1: the transport is faster.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/sync/lock_order.h"
#include "common/time/real_clock.h"
#include "server/transport/tcp/listener.h"
#include "tests/conformance/transport_harness.h"

namespace penstock {
namespace {

using server::transport::Transport;
using testing::Activation;
using testing::Gradient;
using testing::Link;
using testing::Message;

constexpr int kDepth = 4;
constexpr int kRoundTrips = 4000;
constexpr int64_t kStreamBytes = int64_t{256} << 20;

const common::time::RealClock& Clock() {
  static const common::time::RealClock* const clock =
      new common::time::RealClock;
  return *clock;
}

double Seconds(const std::function<void()>& work) {
  const common::time::MonotonicTime start = Clock().Monotonic();
  work();
  return absl::ToDoubleSeconds(Clock().Monotonic() - start);
}

// The two processes' way to meet, and the bare loop's connection.
struct Pipe {
  int fd = -1;

  void Write(const void* data, size_t size) const {
    for (size_t done = 0; done < size;) {
      const ssize_t n = send(fd, static_cast<const char*>(data) + done,
                             size - done, MSG_NOSIGNAL);
      CHECK_GT(n, 0) << "the other process is gone";
      done += n;
    }
  }
  void Read(void* data, size_t size) const {
    const ssize_t n = recv(fd, data, size, MSG_WAITALL);
    CHECK_EQ(n, static_cast<ssize_t>(size)) << "the other process is gone";
  }
  // Both processes are here.
  void Meet() const {
    char byte = 0;
    Write(&byte, 1);
    Read(&byte, 1);
  }
};

// One process's side. Side 0 sends and measures, side 1 receives.
class Side {
 public:
  // `pipe` carries 0 -> 1 in the acked loops, `back` 1 -> 0.
  Side(int side, Pipe pipe, Pipe back)
      : side_(side),
        pipe_(pipe),
        out_(side == 0 ? pipe : back),
        in_(side == 0 ? back : pipe) {
    listener_ = server::transport::tcp::Listener::Open(
                    {}, Clock(), common::ids::SystemRandom())
                    .value();
    std::string mine = listener_->address(), other(64, '\0');
    mine.resize(64, '\0');
    pipe_.Write(mine.data(), 64);
    pipe_.Read(other.data(), 64);
    other = other.c_str();
    const std::vector<Link> links = {{Activation(0), 0, 1, kDepth},
                                     {Gradient(1), 1, 0, kDepth}};
    transport_ = listener_
                     ->CreateTransport(testing::OptionsOf(
                         side, links, [&other](int) { return other; }))
                     .value();
    CHECK_OK(transport_->Connect(testing::Soon()));
    for (int i = 0; i < 2 * kDepth; ++i) {
      messages_.push_back(std::make_unique<Message>());
      messages_.back()->done = transport_->CreateEvent().value();
    }
  }

  // Seconds a round trip.
  double BareRoundTrip() {
    char bytes[64] = {};
    pipe_.Meet();
    return Seconds([&] {
             for (int i = 0; i < kRoundTrips; ++i) {
               if (side_ == 0) pipe_.Write(bytes, 64);
               pipe_.Read(bytes, 64);
               if (side_ == 1) pipe_.Write(bytes, 64);
             }
           }) /
           kRoundTrips;
  }

  double AckedRoundTrip() {
    char bytes[64] = {};
    char ack = 0;
    const auto send = [&](int i) {
      if (i >= kDepth) out_.Read(&ack, 1);
      out_.Write(bytes, 64);
    };
    pipe_.Meet();
    return Seconds([&] {
             for (int i = 0; i < kRoundTrips; ++i) {
               if (side_ == 0) send(i);
               in_.Read(bytes, 64);
               if (side_ == 1) send(i);
               in_.Write(&ack, 1);
             }
             for (int i = 0; i < kDepth; ++i) out_.Read(&ack, 1);
           }) /
           kRoundTrips;
  }

  double RoundTrip() {
    Resize(64);
    const auto in = side_ == 0 ? Gradient(1) : Activation(0);
    const auto out = side_ == 0 ? Activation(0) : Gradient(1);
    for (int i = 0; i < kDepth; ++i) Receive(in, i, *messages_[i]);
    pipe_.Meet();
    const double seconds = Seconds([&] {
      for (int i = 0; i < kRoundTrips; ++i) {
        Message& received = *messages_[i % kDepth];
        Message& sent = *messages_[kDepth + i % kDepth];
        CHECK_OK(sent.Await());
        if (side_ == 0) Send(out, i, sent);
        CHECK_OK(received.Await());
        if (side_ == 1) Send(out, i, sent);
        if (i + kDepth < kRoundTrips) Receive(in, i + kDepth, received);
      }
    });
    for (auto& message : messages_) CHECK_OK(message->Await());
    return seconds / kRoundTrips;
  }

  // Bytes a second, at the sender, whose last message has been received.
  double BareStream(int64_t size) {
    Resize(size);
    const int64_t count = kStreamBytes / size;
    pipe_.Meet();
    return count * size / Seconds([&] {
             for (int64_t i = 0; i < count; ++i) {
               void* at = messages_[i % kDepth]->values.data();
               side_ == 0 ? pipe_.Write(at, size) : pipe_.Read(at, size);
             }
             pipe_.Meet();
           });
  }

  double AckedStream(int64_t size) {
    Resize(size);
    const int64_t count = kStreamBytes / size;
    char ack = 0;
    pipe_.Meet();
    return count * size / Seconds([&] {
             for (int64_t i = 0; i < count; ++i) {
               void* at = messages_[i % kDepth]->values.data();
               if (side_ == 0) {
                 if (i >= kDepth) out_.Read(&ack, 1);
                 out_.Write(at, size);
               } else {
                 in_.Read(at, size);
                 in_.Write(&ack, 1);
               }
             }
             for (int i = 0; i < kDepth && side_ == 0; ++i) out_.Read(&ack, 1);
           });
  }

  double Stream(int64_t size) {
    Resize(size);
    const int64_t count = kStreamBytes / size;
    pipe_.Meet();
    return count * size / Seconds([&] {
             for (int64_t i = 0; i < count; ++i) {
               Message& message = *messages_[i % kDepth];
               CHECK_OK(message.Await());
               side_ == 0 ? Send(Activation(0), i, message)
                          : Receive(Activation(0), i, message);
             }
             for (auto& message : messages_) CHECK_OK(message->Await());
           });
  }

  // The share of a core that this process uses while a receive is pending.
  double WaitingCpu() {
    Resize(64);
    pipe_.Meet();
    Message& message = *messages_[0];
    double share = 0;
    if (side_ == 1) {
      Receive(Activation(0), 0, message);
      const double before = CpuSeconds();
      const double wall = Seconds(
          [&] { (void)message.done->Await(Clock().Now() + absl::Seconds(2)); });
      share = (CpuSeconds() - before) / wall;
    }
    pipe_.Meet();
    if (side_ == 0) Send(Activation(0), 0, message);
    CHECK_OK(message.Await());
    if (side_ == 1) pipe_.Write(&share, sizeof(share));
    if (side_ == 0) pipe_.Read(&share, sizeof(share));
    return share;
  }

  void Finish() { CHECK_OK(transport_->Close(testing::Soon())); }

 private:
  static double CpuSeconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
           1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }
  void Resize(int64_t bytes) {
    for (auto& message : messages_) message->values.assign(bytes / 4, 1.0f);
  }
  void Send(const server::transport::Edge& edge, int64_t step, Message& m) {
    transport_->Send(edge, testing::StepTag(step), m.tensor(), stream_,
                     *m.done);
  }
  void Receive(const server::transport::Edge& edge, int64_t step, Message& m) {
    transport_->Receive(edge, testing::StepTag(step), m.tensor(), stream_,
                        *m.done);
  }

  const int side_;
  const Pipe pipe_;
  const Pipe out_;
  const Pipe in_;
  testing::InlineStream stream_;
  std::unique_ptr<server::transport::tcp::Listener> listener_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Message>> messages_;
};

// Every core computes at nice +10 while this lives.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK_NE(nice(10), -1);
        volatile double sum = 1;
        while (true) sum = sum * 1.0000001 + 1e-9;
      }
      children_.push_back(child);
    }
  }
  ~Load() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Arguments {
  int rounds = 5;
  std::string only;
};

void RunCases(Side& side, int number, const Arguments& arguments,
              const char* cores) {
  struct Case {
    std::string name;
    const char* unit;
    double scale;
    bool less_is_better;
    std::function<double()> free, acked, transport;
  };
  std::vector<Case> cases = {{"64 B round trip", "us", 1e6, true,
                              [&] { return side.BareRoundTrip(); },
                              [&] { return side.AckedRoundTrip(); },
                              [&] { return side.RoundTrip(); }}};
  for (const auto& [name, size] : {std::pair{"64 KiB stream", 64 << 10},
                                   std::pair{"1 MiB stream", 1 << 20},
                                   std::pair{"8 MiB stream", 8 << 20}}) {
    cases.push_back({name, "GB/s", 1e-9, false,
                     [&side, size = size] { return side.BareStream(size); },
                     [&side, size = size] { return side.AckedStream(size); },
                     [&side, size = size] { return side.Stream(size); }});
  }
  for (const Case& each : cases) {
    if (each.name.find(arguments.only) == std::string::npos) continue;
    std::vector<double> free, acked, transport;
    for (int i = 0; i < arguments.rounds; ++i) {
      free.push_back(each.free());
      transport.push_back(each.transport());
      acked.push_back(each.acked());
    }
    const double f = Median(free), a = Median(acked), t = Median(transport);
    if (number != 0) continue;
    const auto ratio = [&each](double bare, double ours) {
      return each.less_is_better ? bare / ours : ours / bare;
    };
    std::printf(
        "%-16s %-10s free %6.2f  acked %6.2f  transport %6.2f %-4s  "
        "to free %.2f  to acked %.2f\n",
        each.name.c_str(), cores, f * each.scale, a * each.scale,
        t * each.scale, each.unit, ratio(f, t), ratio(a, t));
    std::fflush(stdout);
  }
}

// A connected pair of TCP sockets on loopback.
std::pair<int, int> ConnectedPair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  CHECK_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  CHECK_EQ(listen(listener, 1), 0);
  CHECK_EQ(
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int a = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_EQ(connect(a, reinterpret_cast<sockaddr*>(&address), length), 0);
  const int b = accept(listener, nullptr, nullptr);
  close(listener);
  for (const int fd : {a, b}) {
    const int one = 1;
    CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
  }
  return {a, b};
}

void RunSide(int number, int fd, int back, const Arguments& arguments) {
  Side side(number, {fd}, {back});
  RunCases(side, number, arguments, "idle");
  const double share = side.WaitingCpu();
  if (number == 0) std::printf("waiting: %.3f %% of a core\n", 100 * share);
  std::unique_ptr<Load> load;
  if (number == 0) load = std::make_unique<Load>();
  RunCases(side, number, arguments, "computing");
  side.Finish();
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  penstock::common::sync::SkipLockOrderChecks();  // As a daemon does.
  penstock::Arguments arguments;
  if (argc > 1) arguments.rounds = std::atoi(argv[1]);
  if (argc > 2) arguments.only = argv[2];
  const auto [mine, theirs] = penstock::ConnectedPair();
  const auto [back_mine, back_theirs] = penstock::ConnectedPair();
  // Before any thread exists.
  const pid_t child = fork();
  if (child == 0) {
    close(mine);
    close(back_mine);
    penstock::RunSide(1, theirs, back_theirs, arguments);
    return 0;
  }
  close(theirs);
  close(back_theirs);
  penstock::RunSide(0, mine, back_mine, arguments);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
