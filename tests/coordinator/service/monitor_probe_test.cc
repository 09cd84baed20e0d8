#include "coordinator/service/monitor_probe.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::coordinator::service {
namespace {

TEST(MonitorProbeTest, TellsALivingListenerFromADeadOne) {
  tests::fakes::TempDir dir;
  const std::string path = std::string(dir.path()) + "/s.sock";
  EXPECT_EQ(Probe("unix:" + path), ProbeResult::kRefused);  // No such file.

  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(name.sun_path));
  std::memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_EQ(Probe("unix:" + path), ProbeResult::kListening);
  close(fd);  // The file stays, nobody listens.
  EXPECT_EQ(Probe("unix:" + path), ProbeResult::kRefused);
}

TEST(MonitorProbeTest, WhatIsNoAddressIsUnknown) {
  EXPECT_EQ(Probe("nowhere"), ProbeResult::kUnknown);
  EXPECT_EQ(Probe("no-such-host.invalid:1"), ProbeResult::kUnknown);
}

}  // namespace
}  // namespace penstock::coordinator::service
