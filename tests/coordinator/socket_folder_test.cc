#include "coordinator/socket_folder.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/failing_readdir.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator {
namespace {

namespace fs = std::filesystem;

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

class SocketFolderTest : public ::testing::Test {
 protected:
  void BindSocket(const fs::path& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0)
        << path << ": " << std::strerror(errno);
    close(fd);
  }

  tests::fakes::TempDir parent_;
  const fs::path folder_ = parent_.Path("sockets");
};

TEST_F(SocketFolderTest, IsTheUsersAlone) {
  ASSERT_OK(MakeSocketFolder(folder_));
  struct stat made;
  ASSERT_EQ(stat(folder_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777, 0700);
}

TEST_F(SocketFolderTest, OneThatIsThereIsNotTaken) {
  ASSERT_OK(MakeSocketFolder(folder_));
  EXPECT_THAT(
      MakeSocketFolder(folder_),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(folder_.string())));
}

TEST_F(SocketFolderTest, GoesWithItsSockets) {
  ASSERT_OK(MakeSocketFolder(folder_));
  BindSocket(folder_ / "coordinator.sock");
  BindSocket(folder_ / "stage-0.sock");
  RemoveSocketFolder(folder_);
  EXPECT_FALSE(fs::exists(folder_));
  RemoveSocketFolder(folder_);  // Nothing is left to do.
}

TEST_F(SocketFolderTest, WhatIsNoSocketStays) {
  ASSERT_OK(MakeSocketFolder(folder_));
  BindSocket(folder_ / "coordinator.sock");
  std::ofstream(folder_ / "a.txt") << "a user's";
  RemoveSocketFolder(folder_);
  EXPECT_FALSE(fs::exists(folder_ / "coordinator.sock"));
  EXPECT_TRUE(fs::exists(folder_ / "a.txt"));
}

TEST_F(SocketFolderTest, OneThatCannotBeReadToItsEndLosesWhatWasRead) {
  ASSERT_OK(MakeSocketFolder(folder_));
  for (int i = 0; i < 8; ++i) BindSocket(folder_ / std::to_string(i));
  {
    const tests::fakes::FailingReaddir failing(6);
    RemoveSocketFolder(folder_);
  }
  const int left = static_cast<int>(
      std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  EXPECT_GE(left, 2);
  EXPECT_LE(left, 4);
  RemoveSocketFolder(folder_);
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace penstock::coordinator
