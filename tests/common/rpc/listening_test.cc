// Where daemons listen: the flags' rule, and what is said when they cannot.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

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
