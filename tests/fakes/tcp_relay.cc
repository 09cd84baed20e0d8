#include "tests/fakes/tcp_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log/log.h"

namespace penstock::tests::fakes {
namespace {

using common::sync::MutexLock;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

TcpRelay::TcpRelay(int server_port)
    : server_port_(server_port),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  CHECK_EQ(bind(listener_, any, size), 0);
  CHECK_EQ(listen(listener_, 1), 0);
  CHECK_EQ(getsockname(listener_, any, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

TcpRelay::~TcpRelay() {
  CHECK_EQ(eventfd_write(wake_, 1), 0);
  thread_.join();
  for (const int fd :
       {sockets_[kClient], sockets_[kServer], listener_, wake_}) {
    if (fd >= 0) close(fd);
  }
}

void TcpRelay::GoSilent() {
  MutexLock lock(&mutex_);
  silent_ = true;
}

bool TcpRelay::AwaitBytes(End end, int64_t bytes, absl::Duration limit) {
  MutexLock lock(&mutex_);
  const int64_t wanted = bytes_[end] + bytes;
  const auto there = [this, end, wanted] {
    mutex_.AssertHeld();
    return bytes_[end] >= wanted;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&there), limit);
}

bool TcpRelay::AwaitClosed(End end, absl::Duration limit) {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&closed_[end]), limit);
}

bool TcpRelay::closed(End end) const {
  MutexLock lock(&mutex_);
  return closed_[end];
}

void TcpRelay::Run() {
  for (;;) {
    const bool connected = sockets_[kClient] >= 0;
    // An end that has closed is waited for no more.
    std::array<pollfd, 4> fds = {
        {{.fd = wake_, .events = POLLIN},
         {.fd = connected ? -1 : listener_, .events = POLLIN},
         {.fd = closed(kClient) ? -1 : sockets_[kClient], .events = POLLIN},
         {.fd = closed(kServer) ? -1 : sockets_[kServer], .events = POLLIN}}};
    CHECK_GE(poll(fds.data(), fds.size(), -1), 0);
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) Connect();
    if (fds[2].revents != 0) Take(kClient);
    if (fds[3].revents != 0) Take(kServer);
  }
}

void TcpRelay::Connect() {
  sockets_[kClient] = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  sockets_[kServer] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in server = Loopback(server_port_);
  CHECK_EQ(connect(sockets_[kServer],
                   reinterpret_cast<const sockaddr*>(&server), sizeof(server)),
           0);
}

void TcpRelay::Take(End end) {
  std::array<char, 4096> buffer;
  const ssize_t got = recv(sockets_[end], buffer.data(), buffer.size(), 0);
  const int other = sockets_[end == kClient ? kServer : kClient];
  bool silent = false;
  {
    MutexLock lock(&mutex_);
    if (got > 0) {
      bytes_[end] += got;
    } else {
      closed_[end] = true;
    }
    silent = silent_;
  }
  if (silent) return;
  if (got > 0) {
    // One that has closed meanwhile takes nothing: then its own end is seen.
    send(other, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL);
  } else {
    shutdown(other, SHUT_RDWR);
  }
}

}  // namespace penstock::tests::fakes
