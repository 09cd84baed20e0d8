#include "client/run_end.h"

#include <signal.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client {
namespace {

v1::Job Ended(v1::Job::State state) {
  v1::Job job;
  job.set_id("tiny-abcde");
  job.set_state(state);
  return job;
}

v1::Job Failed(v1::Job::StateReason reason) {
  v1::Job job = Ended(v1::Job::STATE_FAILED);
  job.set_reason(reason);
  job.mutable_cause()->set_message("stage-1\x1b[31m is lost");
  return job;
}

class RunEndTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(RunDirectory made,
                         RunDirectory::Create(dir_.Path("run")));
    directory_.emplace(std::move(made));
  }

  tests::fakes::TempDir dir_;
  std::optional<RunDirectory> directory_;
};

TEST_F(RunEndTest, OfSuccessNothingIsSaid) {
  const RunEnd end{.job = Ended(v1::Job::STATE_SUCCEEDED)};
  EXPECT_EQ(ExitCodeOf(end), 0);
  EXPECT_EQ(Describe(end, *directory_), "");
  EXPECT_FALSE(IsRefused(end));
}

TEST_F(RunEndTest, AFailedJobIsNamedWithItsReasonAndCause) {
  const RunEnd end{.job = Failed(v1::Job::STATE_REASON_STAGE_LOST)};
  EXPECT_EQ(ExitCodeOf(end), 1);
  EXPECT_EQ(Describe(end, *directory_),
            "job tiny-abcde failed: STAGE_LOST: stage-1[31m is lost");
}

// A signal of the user's before all, then the coordinator's end: a job that
// they cancelled or broke is no news.
TEST_F(RunEndTest, TheFirstCauseIsSaid) {
  RunEnd end{.coordinator = absl::UnavailableError("the coordinator ended: x"),
             .job = Ended(v1::Job::STATE_CANCELLED)};
  EXPECT_EQ(ExitCodeOf(end), 1);
  EXPECT_EQ(Describe(end, *directory_),
            absl::StrCat("the coordinator ended: x; logs are in ",
                         dir_.Path("run/logs")));
  const struct {
    int signal;
    int exit_code;
    const char* words;
  } kTable[] = {
      {SIGINT, 130, "stopped by Ctrl-C"},
      {SIGTERM, 143, "stopped by SIGTERM"},
      {SIGHUP, 143, "stopped by SIGHUP (the terminal closed)"},
  };
  for (const auto& row : kTable) {
    end.stop_signal = row.signal;
    EXPECT_EQ(ExitCodeOf(end), row.exit_code);
    EXPECT_EQ(
        Describe(end, *directory_),
        absl::StrCat(row.words, "; results so far are in ", dir_.Path("run")));
  }
}

TEST_F(RunEndTest, AStopBeforeThereIsAJobIsSaidWithoutAFolder) {
  EXPECT_EQ(ExitCodeOf(RunEnd{.stop_signal = SIGTERM}), 143);
  EXPECT_EQ(DescribeEarlyStop(SIGTERM),
            "stopped by SIGTERM before the job had begun");
}

TEST_F(RunEndTest, RefusedIsWhatNeverRanAndNobodyStopped) {
  RunEnd end{.job = Failed(v1::Job::STATE_REASON_INVALID_SPEC)};
  EXPECT_TRUE(IsRefused(end));
  end.stop_signal = SIGINT;
  EXPECT_FALSE(IsRefused(end));
  end.stop_signal = 0;
  end.coordinator = absl::UnavailableError("x");
  EXPECT_FALSE(IsRefused(end));
  end.coordinator = absl::OkStatus();
  end.job.mutable_start_time();
  EXPECT_FALSE(IsRefused(end));
  // Its logs are wanted.
  end.job = Failed(v1::Job::STATE_REASON_STAGE_LOST);
  EXPECT_FALSE(IsRefused(end));
  end.job = Failed(v1::Job::STATE_REASON_NUMERICS_MISMATCH);
  EXPECT_TRUE(IsRefused(end));
}

}  // namespace
}  // namespace penstock::client
