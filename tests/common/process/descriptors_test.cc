#include "common/process/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::common::process {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

// Limits are the process's own: each test has a child for it.
template <typename Child>
void InChild(Child child) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

rlimit Limit() {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

TEST(DescriptorsTest, ClosedStandardOnesAreTakenAndStillFail) {
  for (const int closed : {0, 1, 2}) {
    InChild([closed] {
      close(closed);
      EXPECT_OK(OpenStandardDescriptors());
      EXPECT_GE(fcntl(closed, F_GETFD), 0);
      char byte = 0;
      EXPECT_EQ(closed == 0 ? read(0, &byte, 1) : write(closed, &byte, 1), -1);
      EXPECT_EQ(errno, EBADF);
    });
  }
  InChild([] {
    for (const int fd : {0, 1, 2}) close(fd);
    EXPECT_OK(OpenStandardDescriptors());
    EXPECT_GT(open("/dev/null", O_RDONLY), 2);
  });
}

TEST(DescriptorsTest, OpenStandardOnesStayAsTheyAre) {
  InChild([] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(dup2(ends[1], 1), 1);
    close(2);
    EXPECT_OK(OpenStandardDescriptors());
    ASSERT_EQ(write(1, "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
  });
}

TEST(DescriptorsTest, TheSoftLimitBecomesTheHardOne) {
  InChild([] {
    rlimit limit = Limit();
    limit.rlim_cur = 20;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_OK(RaiseDescriptorLimit());
    EXPECT_EQ(Limit().rlim_cur, limit.rlim_max);
  });
}

TEST(DescriptorsTest, TooFewAreSaid) {
  InChild([] {
    const rlimit limit = {.rlim_cur = 20, .rlim_max = 20};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_THAT(RaiseDescriptorLimit(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("may open only 20 files")));
  });
}

}  // namespace
}  // namespace penstock::common::process
