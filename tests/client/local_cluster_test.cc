// The start of an embedded cluster whose coordinator is a script: what is said
// where it does not come up, and that nothing stays behind.
#include "client/local_cluster.h"

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/process/signals.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

class LocalClusterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { common::process::BlockSignals(); }
  LocalClusterTest() { fs::create_directory(dir_.Path("runtime")); }

  absl::Status Start(absl::string_view script, absl::Duration limit) {
    if (!script.empty()) {
      const std::string path = dir_.Write("bin/penstock-coordinator",
                                          absl::StrCat("#!/bin/sh\n", script));
      fs::permissions(path, fs::perms::owner_all);
    }
    return LocalCluster::Start({.binary_directory = dir_.Path("bin"),
                                .runtime_directory = dir_.Path("runtime"),
                                .clock = &clock_},
                               limit)
        .status();
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(dir_.Path("runtime")));
    EXPECT_FALSE(ReapAny().has_value());
  }

  const common::time::RealClock clock_;
  const tests::fakes::TempDir dir_;
};

TEST_F(LocalClusterTest, WithoutTheProgramItsPathIsNamed) {
  EXPECT_THAT(
      Start("", absl::Seconds(60)),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr(absl::StrCat("cannot start ",
                                      dir_.Path("bin/penstock-coordinator")))));
}

TEST_F(LocalClusterTest, AnEndAtTheStartIsToldAtOnceWithTheLastLineOfTheLog) {
  const auto start = clock_.Monotonic();
  EXPECT_THAT(Start("echo one >&2; echo two >&2; exit 3", absl::Seconds(60)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("ended at its start, exit code 3: two")));
  EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(30));
}

TEST_F(LocalClusterTest, SilenceEndsAtTheLimitAndTheProgramIsEnded) {
  EXPECT_THAT(Start("echo hello; exec sleep 1000", absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("does not serve on unix:")));
}

TEST_F(LocalClusterTest, ReadyWithoutASocketIsNotBelieved) {
  EXPECT_THAT(Start("echo >&3; exec sleep 1000", absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no coordinator answers on unix:")));
}

TEST_F(LocalClusterTest, AnEndBeforeTheFirstCallIsToldToo) {
  const auto start = clock_.Monotonic();
  EXPECT_THAT(Start("echo >&3; echo two >&2; exit 3", absl::Seconds(60)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("ended at its start, exit code 3: two")));
  EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(30));
}

TEST_F(LocalClusterTest, AStopSignalMeanwhileStaysForWhoeverWaitsForIt) {
  raise(SIGINT);
  EXPECT_THAT(
      Start("exit 1", absl::Seconds(60)),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 1")));
  EXPECT_EQ(common::process::WaitForSignal(absl::ZeroDuration()), SIGINT);
}

TEST_F(LocalClusterTest, AStopSignalWhileChildrenAreEndedStaysToo) {
  raise(SIGINT);
  EXPECT_THAT(Start("exec sleep 1000", absl::Milliseconds(100)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(common::process::WaitForSignal(absl::ZeroDuration()), SIGINT);
}

}  // namespace
}  // namespace penstock::client
