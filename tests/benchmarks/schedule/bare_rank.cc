#include "tests/benchmarks/schedule/bare_rank.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <limits>

#include "common/log/log.h"
#include "tests/benchmarks/schedule/loopback.h"

namespace penstock::benchmarks::schedule {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// What a receiver says to the sender.
constexpr char kCredit = 'c';
constexpr char kArrived = 'a';

// An end of an edge. Messages are numbered over all steps.
struct Port {
  int fd = -1;
  EdgeEnd end;
  // When each message was observed (receiver), or its arrival (sender).
  std::vector<int64_t> observed;
  int64_t written = 0;  // Sender: messages that went out,
  int64_t ready = 0;    // that may go out,
  int64_t credits = 0;  // and that the receiver has room for.
  size_t partial = 0;   // Receiver: bytes of the message that comes.
};

class Rank {
 public:
  Rank(const RankPlan& plan, int ranks, const RankOptions& options)
      : plan_(plan), options_(options), payload_(options.payload_bytes) {
    // The default, 50 us, would be the largest part of what is measured.
    CHECK(prctl(PR_SET_TIMERSLACK, 1) == 0);
    ConnectAll(ranks);
  }

  void Run() {
    int64_t end = AwaitRelease();
    for (int step = 0; step < options_.steps; ++step) {
      const RankStep result = RunStep(step, end);
      Put(control_, result);
      end = options_.barrier ? AwaitRelease() : result.last_end;
    }
    if (!options_.barrier) AwaitRelease();
    // No socket closes before nobody watches its other end.
    Put(control_, options_.rank);
    Get<char>(control_);
  }

 private:
  void ConnectAll(int ranks) {
    const Listener listener = Listen();
    control_ = Connect(options_.control_port);
    Put(control_, options_.rank);
    Put(control_, listener.port);
    std::vector<int> data_ports(ranks);
    for (int& data_port : data_ports) data_port = Get<int>(control_);
    int expected = 0;
    for (const EdgeEnd& end : plan_.edges) {
      ports_.push_back({.end = end});
      if (!end.sends) {
        ++expected;
        continue;
      }
      ports_.back().fd = Connect(data_ports[end.peer]);
      Put(ports_.back().fd, end.id);
    }
    for (; expected > 0; --expected) {
      const int fd = Accept(listener.fd);
      const int id = Get<int>(fd);
      for (Port& port : ports_) {
        if (port.end.id == id && !port.end.sends) port.fd = fd;
      }
    }
    for (const Port& port : ports_) {
      polled_.push_back({.fd = port.fd, .events = POLLIN});
    }
    polled_.push_back({.fd = control_, .events = POLLIN});
    Put(control_, options_.rank);  // Ready.
  }

  // `end`: when the rank is free.
  RankStep RunStep(int step, int64_t end) {
    RankStep result{.released = end};
    for (Port& port : ports_) {
      if (!port.end.sends) Say(port, kCredit, port.end.first_credits);
    }
    for (const PlannedOp& op : plan_.ops) {
      int64_t start = end;
      if (op.input != kNone) {
        start = std::max(start, Await(op.input, step, op.input_message));
      }
      if (op.output != kNone) {
        start = std::max(start, Await(op.output, step, op.awaited_ack));
      }
      if (&op == &plan_.ops.front()) result.first_start = start;
      end = start + op.nanoseconds;
      SleepUntil(end);
      result.late += std::max<int64_t>(0, NowNs() - end);
      result.busy += op.nanoseconds;
      if (op.output != kNone) {
        ++ports_[op.output].ready;
        Flush(ports_[op.output]);
      }
      for (int port : op.credits) Say(ports_[port], kCredit, 1);
    }
    result.last_end = end;
    return result;
  }

  // Returns when message `message` of this step was observed, or its arrival.
  // Negative ones are of the step before; before the first nothing is awaited.
  int64_t Await(int port, int step, int message) {
    const int64_t number = int64_t{step} * ports_[port].end.messages + message;
    if (number < 0) return 0;
    while (std::ssize(ports_[port].observed) <= number) Move(kNever);
    return ports_[port].observed[number];
  }

  int64_t AwaitRelease() {
    while (releases_.empty()) Move(kNever);
    const int64_t released = releases_.front();
    releases_.pop_front();
    return released;
  }

  void SleepUntil(int64_t end) {
    while (NowNs() < end) Move(end);
  }

  // Sleeps until `until` or until bytes have come, and takes them.
  void Move(int64_t until) {
    timespec left = {};
    if (until != kNever) {
      const int64_t ns = std::max<int64_t>(0, until - NowNs());
      left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    }
    const int found = ppoll(polled_.data(), polled_.size(),
                            until == kNever ? nullptr : &left, nullptr);
    if (found <= 0) return;
    const int64_t now = NowNs();
    const int64_t observed = now + options_.transfer_ns;
    if (polled_.back().revents != 0) {
      Get<char>(control_);
      releases_.push_back(now);
    }
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (polled_[i].revents != 0) Read(ports_[i], observed);
    }
  }

  void Read(Port& port, int64_t observed) {
    std::byte bytes[4096];
    const size_t got = ReadSome(port.fd, bytes, sizeof(bytes));
    if (!port.end.sends) {
      port.partial += got;
      const size_t message = payload_.size();
      const int whole = port.partial / message;
      port.partial %= message;
      port.observed.insert(port.observed.end(), whole, observed);
      Say(port, kArrived, whole);
      return;
    }
    for (size_t i = 0; i < got; ++i) {
      if (static_cast<char>(bytes[i]) == kCredit) {
        ++port.credits;
      } else {
        port.observed.push_back(observed);
      }
    }
    Flush(port);
  }

  void Flush(Port& port) {
    for (; port.written < std::min(port.ready, port.credits); ++port.written) {
      WriteAll(port.fd, payload_.data(), payload_.size());
    }
  }

  void Say(const Port& port, char word, int times) {
    const std::vector<char> words(times, word);
    if (times > 0) WriteAll(port.fd, words.data(), words.size());
  }

  const RankPlan& plan_;
  const RankOptions& options_;
  const std::vector<std::byte> payload_;
  int control_ = -1;
  std::vector<Port> ports_;       // As plan_.edges.
  std::vector<pollfd> polled_;    // As ports_, then control_.
  std::deque<int64_t> releases_;  // When they were observed.
};

}  // namespace

void RunRank(const RankPlan& plan, int ranks, const RankOptions& options) {
  Rank(plan, ranks, options).Run();
}

}  // namespace penstock::benchmarks::schedule
