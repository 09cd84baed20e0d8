#include "coordinator/service/monitor_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/time/real_clock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::coordinator::service {
namespace {

class MonitorProbeTest : public ::testing::Test {
 protected:
  // Within `patience`.
  ProbeResult Probe(const std::string& address,
                    absl::Duration patience = absl::ZeroDuration()) {
    return service::Probe(address, clock_, clock_.Monotonic() + patience);
  }
  // A socket of this path that listens.
  static int Listen(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    CHECK_LT(path.size(), sizeof(name.sun_path));
    std::memcpy(name.sun_path, path.data(), path.size());
    CHECK_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    CHECK_EQ(listen(fd, 1), 0);
    return fd;
  }

  const tests::fakes::TempDir dir_;
  const std::string path_ = dir_.Path("s.sock");
  common::time::RealClock clock_;
};

TEST_F(MonitorProbeTest, TellsALivingListenerFromADeadOne) {
  EXPECT_EQ(Probe("unix:" + path_), ProbeResult::kRefused);  // No such file.
  const int fd = Listen(path_);
  EXPECT_EQ(Probe("unix:" + path_), ProbeResult::kListening);
  EXPECT_EQ(Probe("unix:" + path_, absl::Milliseconds(10)),
            ProbeResult::kListening);
  close(fd);  // The file stays, nobody listens.
  EXPECT_EQ(Probe("unix:" + path_), ProbeResult::kRefused);
}

// A killed process closes its session before or after this socket.
TEST_F(MonitorProbeTest, AListenerThatGoesMeanwhileIsRefused) {
  const int fd = Listen(path_);
  std::thread going([fd] {
    pollfd caller{.fd = fd, .events = POLLIN, .revents = 0};
    CHECK_EQ(poll(&caller, 1, 60'000), 1);
    close(fd);
  });
  EXPECT_EQ(Probe("unix:" + path_, absl::Seconds(60)), ProbeResult::kRefused);
  going.join();
}

TEST_F(MonitorProbeTest, AServerThatHangsUpButListensIsThere) {
  const int fd = Listen(path_);
  std::thread going([fd] {
    const int call = accept(fd, nullptr, nullptr);
    CHECK_GE(call, 0);
    close(call);
  });
  EXPECT_EQ(Probe("unix:" + path_, absl::Milliseconds(50)),
            ProbeResult::kListening);
  going.join();
  close(fd);
}

TEST_F(MonitorProbeTest, WhatIsNoAddressIsUnknown) {
  EXPECT_EQ(Probe("nowhere"), ProbeResult::kUnknown);
}

// However fast a name server would answer, or not.
TEST_F(MonitorProbeTest, NamesAreNotLookedUp) {
  EXPECT_EQ(Probe("no-such-host.invalid:1"), ProbeResult::kUnknown);
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  EXPECT_EQ(Probe(absl::StrCat(host, ":1")), ProbeResult::kUnknown);
  EXPECT_EQ(Probe("localhost.:1"), ProbeResult::kUnknown);
}

TEST_F(MonitorProbeTest, LocalhostIsBothLoopbacks) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const std::string port = absl::StrCat(ntohs(name.sin_port));
  // Bound, so that the port is nobody else's.
  for (const char* host : {"localhost:", "127.0.0.1:"}) {
    EXPECT_EQ(Probe(host + port), ProbeResult::kRefused) << host;
  }
  ASSERT_EQ(listen(fd, 1), 0);
  for (const char* host : {"localhost:", "127.0.0.1:"}) {
    EXPECT_EQ(Probe(host + port), ProbeResult::kListening) << host;
  }
  close(fd);
}

}  // namespace
}  // namespace penstock::coordinator::service
