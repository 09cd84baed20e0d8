// What tests of StageJobRunner share: the real runner with real files, weights
// and executors, on the reference device.
#ifndef PENSTOCK_TESTS_SERVER_SERVICE_STAGE_JOB_RUNNER_CASE_H_
#define PENSTOCK_TESTS_SERVER_SERVICE_STAGE_JOB_RUNNER_CASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "gtest/gtest.h"
#include "server/device/reference/factory.h"
#include "server/service/stage_job_runner.h"
#include "server/transport/inprocess/hub.h"
#include "tests/fakes/forwarding_transport.h"
#include "tests/fakes/temp_dir.h"
#include "tests/server/executor/assignments.h"
#include "tests/server/service/recorded.h"

namespace penstock::server::service {

inline constexpr int64_t kSequenceLength = 8;

struct Reported {
  int64_t epoch = 0;
  v1::StageMessage message;
};

// Says when it is asked to connect: then the job is the runner's.
class ConnectingTransport final : public tests::fakes::ForwardingTransport {
 public:
  ConnectingTransport(std::unique_ptr<transport::Transport> wrapped,
                      common::sync::Notification& connecting)
      : ForwardingTransport(std::move(wrapped)), connecting_(connecting) {}

  absl::Status Connect(absl::Time deadline) override {
    if (!connecting_.HasBeenNotified()) connecting_.Notify();
    return ForwardingTransport::Connect(deadline);
  }

 private:
  common::sync::Notification& connecting_;
};

class StageJobRunnerCase : public ::testing::Test {
 protected:
  StageJobRunnerCase()
      : hub_(transport::inprocess::HubOptions{}),
        resources_(ResourcesOf("stage-0", connecting_)),
        runner_(MakeRunner(resources_, reports_)) {
    Write("abcdefghijklmnopqrstuvwxyz0123456789");
  }

  // Another stage of the same hub. What it reports is not among reports_.
  struct Neighbour {
    common::sync::Notification connecting;
    StageResources resources;
    penstock::testing::Recorded<Reported> reports;
    // Last: its threads use the others.
    std::unique_ptr<StageJobRunner> runner;
  };
  std::unique_ptr<Neighbour> MakeNeighbour(const std::string& name) {
    auto neighbour = std::make_unique<Neighbour>();
    neighbour->resources = ResourcesOf(name, neighbour->connecting);
    neighbour->runner = MakeRunner(neighbour->resources, neighbour->reports);
    return neighbour;
  }

  // `connecting` is notified when its transport first connects.
  StageResources ResourcesOf(const std::string& name,
                             common::sync::Notification& connecting) {
    return {.stage_name = name,
            .make_device = [this](const std::string&, int)
                -> absl::StatusOr<std::unique_ptr<device::Device>> {
              if (!device_error_.ok()) return device_error_;
              return device::reference::CreateReferenceDevice();
            },
            .clock = &clock_,
            .make_transport = [this, name, &connecting](
                                  const transport::TransportOptions& options)
                -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
              ASSIGN_OR_RETURN(auto joined, hub_.Join(name, options));
              return std::make_unique<ConnectingTransport>(std::move(joined),
                                                           connecting);
            },
            .resident_bytes = [] { return 1; }};
  }
  static std::unique_ptr<StageJobRunner> MakeRunner(
      const StageResources& resources,
      penstock::testing::Recorded<Reported>& reports) {
    return std::make_unique<StageJobRunner>(
        resources, [&reports](int64_t epoch, v1::StageMessage message) {
          reports.Put({epoch, std::move(message)});
        });
  }

  void Write(const std::string& text) { path_ = dir_.Write("t.txt", text); }
  static model::ModelConfig Model() {
    model::ModelConfig model = penstock::testing::TinyModel();
    model.vocab = 256;
    return model;
  }
  v1::DataConfig Data() const {
    v1::DataConfig data;
    data.set_train_path(path_);
    data.set_format(v1::DataConfig::FORMAT_TEXT);
    data.set_sequence_length(kSequenceLength);
    return data;
  }
  v1::CheckInputs Check() const {
    v1::CheckInputs check;
    *check.mutable_model() = penstock::testing::EncodeModel(Model());
    *check.mutable_data() = Data();
    return check;
  }
  // Of so many ranks; two micro-batches.
  v1::Assignment AssignmentOf(int ranks, int rank = 0) const {
    v1::Assignment assignment = penstock::testing::Assignments(
        penstock::testing::LowerNamed({.ranks = ranks, .micro_batches = 2}),
        penstock::testing::AssignmentOptions{.model = Model()})[rank];
    *assignment.mutable_data() = Data();
    return assignment;
  }
  Reported Next() {
    auto next = reports_.Take();
    CHECK(next.has_value());
    return *std::move(next);
  }
  void Abort(int64_t epoch, const absl::Status& cause) {
    runner_->Abort({.epoch = epoch, .cause = cause});
  }
  v1::StageStatus Status() {
    v1::StageStatus status;
    runner_->Describe(status);
    return status;
  }
  std::string Fingerprint(int64_t epoch) {
    runner_->CheckInputs(epoch, Check());
    const Reported checked = Next();
    CHECK(checked.message.has_inputs_checked());
    return checked.message.inputs_checked().train().fingerprint();
  }

  const tests::fakes::TempDir dir_;
  std::string path_;
  common::time::RealClock clock_;
  transport::inprocess::Hub hub_;
  common::sync::Notification connecting_;
  absl::Status device_error_;
  const StageResources resources_;
  penstock::testing::Recorded<Reported> reports_;
  // Last: its threads use the others.
  std::unique_ptr<StageJobRunner> runner_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_TESTS_SERVER_SERVICE_STAGE_JOB_RUNNER_CASE_H_
