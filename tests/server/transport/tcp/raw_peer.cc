#include "tests/server/transport/tcp/raw_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/log/log.h"

namespace penstock::testing {

namespace tcp = server::transport::tcp;

namespace {

constexpr int kTimeoutMs = 60'000;

void MakeBlocking(int fd) {
  CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
  const timeval timeout{.tv_sec = kTimeoutMs / 1000};
  CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)),
           0);
}

}  // namespace

RawSocket::RawSocket(tcp::Fd fd) : fd_(std::move(fd)) {
  MakeBlocking(fd_.get());
}

RawSocket RawSocket::Dial(const std::string& address) {
  auto fd = tcp::StartConnect(tcp::ParseSocketAddress(address).value());
  CHECK_OK(fd.status());
  pollfd wait{.fd = fd->get(), .events = POLLOUT};
  CHECK_EQ(poll(&wait, 1, kTimeoutMs), 1);
  CHECK_OK(tcp::ConnectResult(*fd));
  return RawSocket(*std::move(fd));
}

bool RawSocket::Write(absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

bool RawSocket::Read(absl::Span<std::byte> bytes) {
  return recv(fd_.get(), bytes.data(), bytes.size(), MSG_WAITALL) ==
         static_cast<ssize_t>(bytes.size());
}

bool RawSocket::WriteFrame(const tcp::Frame& frame) {
  return Write(tcp::EncodeFrame(frame));
}

bool RawSocket::WaitForClose() {
  char bytes[4096];
  while (true) {
    const ssize_t got = recv(fd_.get(), bytes, sizeof(bytes), 0);
    if (got == 0) return true;
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  }
}

void RawSocket::Reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  fd_.Reset();
}

bool ProveAsDialler(RawSocket& socket, const server::transport::Edge& edge,
                    int64_t epoch, const std::string& secret) {
  const tcp::HelloBytes hello =
      tcp::EncodeHello({.edge = edge, .epoch = epoch});
  tcp::ChallengeBytes challenge;
  if (!socket.Write(hello) || !socket.Read(absl::MakeSpan(challenge))) {
    return false;
  }
  tcp::ListenerNonce nonce;
  std::copy_n(challenge.begin(), nonce.size(), nonce.begin());
  std::byte welcome{};
  return socket.Write(
             tcp::Prove(secret, tcp::Prover::kDialler, hello, nonce)) &&
         socket.Read(absl::MakeSpan(&welcome, 1)) && welcome == tcp::kWelcome;
}

RawListener::RawListener()
    : fd_(tcp::Listen(tcp::ParseSocketAddress("127.0.0.1:0").value()).value()),
      address_(tcp::ToString(tcp::LocalAddress(fd_).value())) {}

RawSocket RawListener::Accept() {
  pollfd wait{.fd = fd_.get(), .events = POLLIN};
  CHECK_EQ(poll(&wait, 1, kTimeoutMs), 1) << "nobody dialled";
  return RawSocket(tcp::Fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

bool RawListener::ProveAsListener(RawSocket& socket,
                                  const std::string& secret) {
  tcp::HelloBytes hello;
  tcp::ProofBytes proof;
  const tcp::ListenerNonce nonce{};
  return socket.Read(absl::MakeSpan(hello)) &&
         socket.Write(tcp::MakeChallenge(secret, hello, nonce)) &&
         socket.Read(absl::MakeSpan(proof)) &&
         tcp::SameProof(
             proof, tcp::Prove(secret, tcp::Prover::kDialler, hello, nonce)) &&
         socket.Write(absl::MakeConstSpan(&tcp::kWelcome, 1));
}

}  // namespace penstock::testing
