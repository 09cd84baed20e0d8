// An embedded cluster whose coordinator is a script: what is said where it does
// not come up, that it may hang, and that nothing stays behind.
#include "client/local_cluster.h"

#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/process/signals.h"
#include "common/rpc/address.h"
#include "common/rpc/reactor_registry.h"
#include "common/rpc/rpc_server.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.grpc.pb.h"
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

  void WriteProgram(const std::string& name, absl::string_view script) {
    const std::string path = dir_.Write(absl::StrCat("bin/", name),
                                        absl::StrCat("#!/bin/sh\n", script));
    fs::permissions(path, fs::perms::owner_all);
  }

  absl::StatusOr<std::unique_ptr<LocalCluster>> StartCluster(
      absl::Duration limit) {
    return LocalCluster::Start({.binary_directory = dir_.Path("bin"),
                                .runtime_directory = dir_.Path("runtime"),
                                .clock = &clock_},
                               limit);
  }

  absl::Status Start(absl::string_view script, absl::Duration limit) {
    if (!script.empty()) WriteProgram("penstock-coordinator", script);
    return StartCluster(limit).status();
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

// Before it says that it serves; where it says so and nobody answers; where it
// says nothing and never will.
TEST_F(LocalClusterTest, AStopSignalEndsTheStartAndStaysForWhoeverWaitsForIt) {
  for (const char* script : {"exec sleep 1000", "echo >&3; exec sleep 1000",
                             "exec 3>&-; exec sleep 1000"}) {
    const auto start = clock_.Monotonic();
    raise(SIGINT);
    EXPECT_THAT(Start(script, absl::Seconds(60)),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")))
        << script;
    EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(30)) << script;
    EXPECT_EQ(common::process::WaitForSignal(absl::ZeroDuration()), SIGINT);
  }
}

// Takes reports of stages' ends, and answers none.
class SilentCoordination final
    : public v1::CoordinationService::CallbackService {
 public:
  v1::ReportStageExitRequest AwaitReport() {
    reported_.WaitForNotification();
    common::sync::MutexLock lock(&mutex_);
    return report_;
  }

 private:
  class Silent final : public grpc::ServerUnaryReactor {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };

  grpc::ServerUnaryReactor* ReportStageExit(
      grpc::CallbackServerContext*, const v1::ReportStageExitRequest* request,
      v1::ReportStageExitResponse*) override {
    {
      common::sync::MutexLock lock(&mutex_);
      report_ = *request;
    }
    if (!reported_.HasBeenNotified()) reported_.Notify();
    return new Silent;
  }

  common::sync::Notification reported_;
  common::sync::Mutex mutex_;
  v1::ReportStageExitRequest report_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LocalClusterTest, NeitherAReportNorTheEndWaitsForACoordinatorThatHangs) {
  SilentCoordination coordination;
  common::rpc::ReactorRegistry reactors;
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      common::rpc::RpcServer::Start(
          {.kind = common::rpc::AddressKind::kUnix, .path = dir_.Path("s")},
          {&coordination}, reactors));
  // After --embedded --state-dir.
  WriteProgram("penstock-coordinator",
               absl::StrCat("mkdir \"$3\"; ln -s ", dir_.Path("s"),
                            " \"$3/coordinator.sock\"; echo >&3\n"
                            "exec sleep 1000"));
  WriteProgram("penstock-stage", "exit 3");
  ASSERT_OK_AND_ASSIGN(const auto cluster, StartCluster(absl::Seconds(60)));
  const auto start = clock_.Monotonic();
  ASSERT_OK(cluster->StartStages(
      {.count = 2, .device = "cpu", .log_directory = dir_.path()}));
  std::vector<LocalCluster::Ended> ended;
  while (ended.size() < 2) {
    const auto more = cluster->Reap();
    ended.insert(ended.end(), more.begin(), more.end());
    if (!more.empty()) continue;
    ASSERT_TRUE(AwaitChildEnd(absl::Seconds(60)));
  }
  const v1::ReportStageExitRequest report = coordination.AwaitReport();
  EXPECT_EQ(report.stage_name(), ended.front().name);
  EXPECT_EQ(report.pid(), ended.front().exit.pid);
  EXPECT_EQ(report.exit_code(), 3);
  cluster->Stop();
  // Far below the time-out of one call.
  EXPECT_LT(clock_.Monotonic() - start, absl::Seconds(8));
}

}  // namespace
}  // namespace penstock::client
