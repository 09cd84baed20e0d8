// Where daemons listen: the flags' rule, and what is said when they cannot.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/bind_check.h"
#include "common/rpc/listen_flags.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/stage_service.grpc.pb.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace {

std::atomic<bool> ipv6_is_off = false;

}  // namespace

// The process's calls come here: the program goes before libraries.
extern "C" int socket(int family, int type, int protocol) noexcept {
  if (ipv6_is_off && family == AF_INET6) {
    errno = EAFNOSUPPORT;
    return -1;
  }
  return static_cast<int>(syscall(SYS_socket, family, type, protocol));
}

namespace penstock::common::rpc {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A server that answers nothing.
struct Server {
  absl::Status Listen(const std::string& address) {
    auto started =
        RpcServer::Start(ParseAddress(address).value(), {&service}, reactors);
    if (started.ok()) server = *std::move(started);
    return started.status();
  }

  v1::StageService::CallbackService service;
  ReactorRegistry reactors;
  std::unique_ptr<RpcServer> server;
};

TEST(ListenFlagsTest, ListenIsOnLoopback) {
  ASSERT_OK_AND_ASSIGN(const Address address,
                       ParseListen({.listen = "127.0.0.1:7400"}));
  EXPECT_EQ(address.ToString(), "127.0.0.1:7400");
  EXPECT_THAT(ParseListen({.listen = "0.0.0.0:7400"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--listen 0.0.0.0:7400 is not on "
                                       "loopback"),
                             HasSubstr("--insecure-listen 0.0.0.0:7400"))));
}

TEST(ListenFlagsTest, ANameThatBeginsAsALoopbackAddressIsNone) {
  EXPECT_THAT(ParseListen({.listen = "127.example.org:7400"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not on loopback")));
}

TEST(ListenFlagsTest, InsecureListenCountsWhereItIsGiven) {
  ASSERT_OK_AND_ASSIGN(const Address address,
                       ParseListen({.listen = "unix:/run/penstock.sock",
                                    .insecure_listen = "0.0.0.0:7400"}));
  EXPECT_EQ(address.ToString(), "0.0.0.0:7400");
  EXPECT_THAT(ParseListen({.listen = "unix:/a", .insecure_listen = "b"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'b'")));
}

TEST(ListeningTest, APortInUseIsAlreadyTaken) {
  Server first, second;
  ASSERT_OK(first.Listen("127.0.0.1:0"));
  const std::string address = first.server->address().ToString();
  EXPECT_THAT(
      second.Listen(address),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr(address), HasSubstr("Address already in use"))));
}

TEST(ListeningTest, OneAddressOfSeveralIsEnoughButNoneMayBeInUse) {
  EXPECT_EQ(ListenVerdict({0}), 0);
  EXPECT_EQ(ListenVerdict({EADDRNOTAVAIL, 0}), 0);
  EXPECT_EQ(ListenVerdict({0, EAFNOSUPPORT}), 0);
  EXPECT_EQ(ListenVerdict({EADDRNOTAVAIL, EACCES}), EADDRNOTAVAIL);
  EXPECT_EQ(ListenVerdict({EADDRNOTAVAIL, EADDRINUSE, 0}), EADDRINUSE);
}

TEST(ListeningTest, AllInterfacesAreThoseOfIpv4WhereThereIsNothingElse) {
  ipv6_is_off = true;
  const absl::Cleanup on_again = [] { ipv6_is_off = false; };
  Server all, one;
  EXPECT_OK(all.Listen("[::]:0"));
  EXPECT_THAT(
      one.Listen("[::1]:0"),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("[::1]:0"), HasSubstr("not supported"))));
}

TEST(ListeningTest, AnAddressOfAnotherMachineIsUnavailable) {
  Server server;  // 192.0.2.0/24 is for documents only.
  EXPECT_THAT(server.Listen("192.0.2.1:0"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("192.0.2.1:0"),
                             HasSubstr("Cannot assign requested address"))));
}

TEST(ListeningTest, ASocketInNoFolderIsUnavailable) {
  const tests::fakes::TempDir dir;
  Server server;
  EXPECT_THAT(server.Listen(absl::StrCat("unix:", dir.Path("none/a.sock"))),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("none/a.sock"),
                             HasSubstr("No such file or directory"))));
}

TEST(ListeningTest, ASocketThatIsAnsweredIsTaken) {
  const tests::fakes::TempDir dir;
  Server first, second;
  const std::string address = absl::StrCat("unix:", dir.Path("a.sock"));
  ASSERT_OK(first.Listen(address));
  EXPECT_THAT(second.Listen(address),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("another server answers")));
}

TEST(ListeningTest, ASocketOfADeadServerIsReplaced) {
  const tests::fakes::TempDir dir;
  Server server;
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(name.sun_path, dir.Path("a.sock").c_str());
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  close(dead);
  EXPECT_OK(server.Listen(absl::StrCat("unix:", dir.Path("a.sock"))));
}

// A connection to the Unix socket; -1: nobody answers.
int Connect(const std::string& path) {
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(name.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

TEST(ListeningTest, AServerThatEndsLeavesItsSuccessorsSocket) {
  const tests::fakes::TempDir dir;
  const std::string address = absl::StrCat("unix:", dir.Path("a.sock"));
  Server first, second, third;
  ASSERT_OK(first.Listen(address));
  // Holds up its end, for as long as that has.
  const int idle = Connect(dir.Path("a.sock"));
  ASSERT_GE(idle, 0);
  std::thread ending([&first] { first.server.reset(); });
  for (int fd = 0; fd >= 0;) {
    fd = Connect(dir.Path("a.sock"));
    if (fd >= 0) close(fd);
  }
  EXPECT_OK(second.Listen(address));
  ending.join();
  close(idle);
  EXPECT_THAT(third.Listen(address),
              StatusIs(absl::StatusCode::kAlreadyExists));
  second.server.reset();
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(ListeningTest, OfTwoThatStartAtOnceOnADeadSocketOneHasIt) {
  const tests::fakes::TempDir dir;
  const std::string path = dir.Path("a.sock");
  for (int round = 0; round < 20; ++round) {
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    std::strcpy(name.sun_path, path.c_str());
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    close(dead);
    Server first, second;
    absl::Status other;
    std::thread rival(
        [&] { other = second.Listen(absl::StrCat("unix:", path)); });
    const absl::Status one = first.Listen(absl::StrCat("unix:", path));
    rival.join();
    ASSERT_NE(one.ok(), other.ok()) << one << "; " << other;
    EXPECT_THAT(one.ok() ? other : one,
                StatusIs(absl::StatusCode::kAlreadyExists));
    const int fd = Connect(path);
    ASSERT_GE(fd, 0);
    close(fd);
  }
}

TEST(ListeningTest, AFolderThatSomebodyKeepsLockedHoldsUpNobody) {
  const tests::fakes::TempDir dir;
  const int folder = open(dir.path().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(folder, LOCK_EX), 0);
  const absl::Cleanup closing = [folder] { close(folder); };
  Server server;
  EXPECT_OK(server.Listen(absl::StrCat("unix:", dir.Path("a.sock"))));
  server.server.reset();
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(ListeningTest, APathOfTheGreatestLengthIsListenedOn) {
  const tests::fakes::TempDir dir;
  const std::string folder = absl::StrCat(dir.path(), "/");
  ASSERT_LT(folder.size(), kMaxUnixPathBytes);
  const std::string path =
      absl::StrCat(folder, std::string(kMaxUnixPathBytes - folder.size(), 'x'));
  Server server;
  EXPECT_OK(server.Listen(absl::StrCat("unix:", path)));
  const int fd = Connect(path);
  EXPECT_GE(fd, 0);
  close(fd);
}

TEST(ListeningTest, ASocketThatCannotBeAskedIsKeptAndTheReasonSaid) {
  const tests::fakes::TempDir dir;
  Server server;
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(name.sun_path, dir.Path("a.sock").c_str());
  const int other = socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_EQ(bind(other, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  EXPECT_THAT(
      server.Listen(absl::StrCat("unix:", dir.Path("a.sock"))),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("cannot tell whether another server"),
                     HasSubstr("a.sock"), HasSubstr("wrong type for socket"))));
  EXPECT_EQ(access(name.sun_path, F_OK), 0);
  close(other);
}

TEST(ListeningTest, AFileThatIsNoSocketIsKept) {
  const tests::fakes::TempDir dir;
  Server server;
  const std::string path = dir.Write("a.sock", "words");
  EXPECT_THAT(server.Listen(absl::StrCat("unix:", path)),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("the file exists and is no socket")));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace penstock::common::rpc
