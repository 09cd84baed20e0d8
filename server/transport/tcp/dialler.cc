#include "server/transport/tcp/dialler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/status/status_macros.h"
#include "server/transport/tcp/exact_read.h"
#include "server/transport/tcp/little_endian.h"

namespace penstock::server::transport::tcp {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(200);

}  // namespace

Dialler::Dialler(const Options& options, EventLoop& loop,
                 const common::ids::RandomSource& random)
    : options_(options), loop_(loop), random_(random), pause_(kFirstPause) {
  Dial();
}

void Dialler::Dial() {
  phase_ = Phase::kConnecting;
  have_ = 0;
  auto socket = StartConnect(options_.address);
  if (!socket.ok()) return TryAgain(socket.status());
  socket_ = *std::move(socket);
  auto watch =
      loop_.WatchFd(socket_.get(), UV_WRITABLE, [this](int) { OnEvents(); });
  if (!watch.ok()) return TryAgain(watch.status());
  watch_ = *std::move(watch);
  timer_ = loop_.After(options_.attempt_timeout, [this] { OnTimeout(); });
}

void Dialler::OnEvents() {
  if (const absl::Status status = Step(); !status.ok()) TryAgain(status);
}

void Dialler::OnTimeout() {
  // Of a process that was stopped the timer comes before what the socket has.
  // With the welcome the edge stands at the peer, and giving the socket up
  // would break it.
  absl::Status status;
  if (phase_ == Phase::kWelcome) status = Step();
  if (status.ok()) {
    status = absl::UnavailableError("no answer to the handshake in time");
  }
  TryAgain(status);  // Unless it is connected now.
}

absl::Status Dialler::Step() {
  if (phase_ == Phase::kConnecting) {
    RETURN_IF_ERROR(ConnectResult(socket_));
    RETURN_IF_ERROR(SetDataOptions(socket_, options_.liveness));
    Hello hello{.edge = options_.connection.options().edge,
                .epoch = options_.epoch};
    std::array<std::byte, 16> random;
    Store(random_(), random.data());
    Store(random_(), random.data() + 8);
    std::copy_n(random.begin(), hello.nonce.size(), hello.nonce.begin());
    hello_ = EncodeHello(hello);
    RETURN_IF_ERROR(WriteAtOnce(socket_, hello_));
    phase_ = Phase::kChallenge;
    watch_->SetEvents(UV_READABLE);
    return absl::OkStatus();
  }
  if (phase_ == Phase::kChallenge) {
    RETURN_IF_ERROR(ReadExactly(socket_, absl::MakeSpan(challenge_), have_));
    if (have_ < challenge_.size()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const ProofBytes proof,
                     AnswerChallenge(options_.secret, hello_, challenge_));
    RETURN_IF_ERROR(WriteAtOnce(socket_, proof));
    phase_ = Phase::kWelcome;
    have_ = 0;
    return absl::OkStatus();
  }
  std::array<std::byte, 1> welcome;
  RETURN_IF_ERROR(ReadExactly(socket_, absl::MakeSpan(welcome), have_));
  if (have_ == 0) return absl::OkStatus();
  if (welcome[0] != kWelcome) {
    return absl::DataLossError("wrong byte where the welcome belongs");
  }
  timer_.reset();
  watch_.reset();
  options_.connection.Attach(std::move(socket_));
  options_.on_connected();
  return absl::OkStatus();
}

void Dialler::TryAgain(const absl::Status& problem) {
  watch_.reset();
  socket_.Reset();
  timer_.reset();
  if (!options_.connection.connecting()) return;
  options_.connection.NoteProblem(problem);
  timer_ = loop_.After(pause_, [this] {
    timer_.reset();
    if (options_.connection.connecting()) Dial();
  });
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace penstock::server::transport::tcp
