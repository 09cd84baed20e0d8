#include "tests/benchmarks/schedule/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "common/log/log.h"

namespace penstock::benchmarks::schedule {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// What a system call returned, unless it failed.
template <typename T>
T Checked(T result, const char* what) {
  CHECK(result >= 0) << what << ": " << std::strerror(errno);
  return result;
}

int WithoutDelay(int fd) {
  const int one = 1;
  Checked(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)),
          "TCP_NODELAY");
  return fd;
}

}  // namespace

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000000000} * now.tv_sec + now.tv_nsec;
}

Listener Listen() {
  Listener listener;
  listener.fd =
      Checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  Checked(bind(listener.fd, where, size), "bind");
  Checked(listen(listener.fd, SOMAXCONN), "listen");
  Checked(getsockname(listener.fd, where, &size), "getsockname");
  listener.port = ntohs(address.sin_port);
  return listener;
}

int Accept(int listener) {
  return WithoutDelay(
      Checked(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept"));
}

int Connect(int port) {
  const int fd =
      Checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const sockaddr_in address = Loopback(port);
  Checked(
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      "connect");
  return WithoutDelay(fd);
}

void WriteAll(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written =
        Checked(send(fd, from, bytes, MSG_NOSIGNAL), "send");
    from += written;
    bytes -= written;
  }
}

size_t ReadSome(int fd, void* data, size_t bytes) {
  const ssize_t got = Checked(recv(fd, data, bytes, 0), "recv");
  CHECK(got > 0) << "the other process has ended";
  return got;
}

void ReadAll(int fd, void* data, size_t bytes) {
  char* to = static_cast<char*>(data);
  while (bytes > 0) {
    const size_t got = ReadSome(fd, to, bytes);
    to += got;
    bytes -= got;
  }
}

}  // namespace penstock::benchmarks::schedule
