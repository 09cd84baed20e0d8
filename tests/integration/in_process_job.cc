// in_process_job JOB.yaml RUN_DIR [KEY=VALUE ...]: runs a job file in this one
// process, without gRPC and over the inprocess transport, and prints its
// weights_sha256. The coordinator's core, its intake of job files, and the
// stages' assembly, data, executors and files are the real ones; the bits must
// be those of `penstock run`.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/rpc/cause.h"
#include "common/status/status_macros.h"
#include "common/time/real_clock.h"
#include "coordinator/service/job_intake.h"
#include "nlohmann/json.hpp"
#include "server/backends.h"
#include "server/service/stage_job_runner.h"
#include "tests/integration/local_cluster.h"

namespace penstock::testing {
namespace {

// A stage daemon without its session: commands go straight to the runner.
class RunnerStage final : public ClusterStage {
 public:
  RunnerStage(int index, const std::string& device,
              server::transport::inprocess::Hub& hub, StageMailbox& mailbox)
      : device_(device), index_(index) {
    resources_.stage_name = absl::StrCat("stage-", index);
    resources_.make_device = [this](const std::string& numerics_id,
                                    int threads) {
      return server::CreateDevice(
          {.kind = device_, .numerics_id = numerics_id, .threads = threads});
    };
    resources_.clock = &clock_;
    resources_.make_transport =
        [this, &hub](const server::transport::TransportOptions& options) {
          return hub.Join(resources_.stage_name, options);
        };
    resources_.resident_bytes = [] { return int64_t{0}; };
    runner_ = std::make_unique<server::service::StageJobRunner>(
        resources_, [index, &mailbox](int64_t, v1::StageMessage message) {
          mailbox.Put(index, std::move(message));
        });
  }

  v1::RegisterStageRequest Registration() const override {
    v1::RegisterStageRequest request;
    request.set_stage_name(resources_.stage_name);
    request.set_incarnation(
        absl::StrCat("00000000-0000-4000-8000-00000000000", index_));
    request.mutable_device()->set_kind(device_);
    const auto ids = server::NumericsIds(device_, "");
    CHECK_OK(ids.status());
    for (const std::string& id : *ids) {
      request.add_numerics_ids(id);
    }
    request.mutable_protocol()->set_lowest(1);
    request.mutable_protocol()->set_highest(1);
    request.set_host("here");
    request.set_data_address("127.0.0.1:1");  // Nobody connects.
    return request;
  }

  absl::Status Take(const v1::CoordinatorMessage& message) override {
    const int64_t epoch = message.epoch();
    if (message.has_check_inputs()) {
      runner_->CheckInputs(epoch, message.check_inputs());
    } else if (message.has_probe_output()) {
      // The cluster makes no folders.
      std::error_code error;
      std::filesystem::create_directories(message.probe_output().directory(),
                                          error);
      if (error) return absl::InternalError(error.message());
      runner_->ProbeOutput(epoch, message.probe_output());
    } else if (message.has_assignment()) {
      runner_->Assemble(epoch, message.assignment());
    } else if (message.has_commands()) {
      runner_->Run(epoch, {.epoch = epoch, .work = message.commands()});
    } else if (message.has_release()) {
      runner_->Run(epoch, {.epoch = epoch, .work = message.release()});
    } else if (message.has_end()) {
      runner_->Run(epoch, {.epoch = epoch, .work = message.end()});
    } else if (message.has_abort()) {
      const v1::Abort& abort = message.abort();
      runner_->Abort({.epoch = abort.epoch(),
                      .cause = abort.has_cause()
                                   ? common::rpc::FromCause(abort.cause())
                                   : absl::OkStatus()});
    }
    return absl::OkStatus();
  }

 private:
  const std::string device_;
  const int index_;
  common::time::RealClock clock_;
  server::service::StageResources resources_;
  std::unique_ptr<server::service::StageJobRunner> runner_;
};

absl::StatusOr<std::string> RunJob(const v1::CreateJobRequest& request) {
  using coordinator::service::JobIntake;
  ASSIGN_OR_RETURN(const coordinator::dispatch::NewJob job,
                   JobIntake(JobIntake::Mode::kEmbedded).Read(request));
  if (!job.spec.pipeline.stages.has_value()) {
    return absl::InvalidArgumentError("pipeline.stages must be a number");
  }
  const std::string device =
      job.spec.device == coordinator::spec::DeviceKind::kReference ? "reference"
                                                                   : "cpu";
  LocalCluster cluster(
      static_cast<int>(*job.spec.pipeline.stages),
      {.stage = [&device](int index, auto& hub, auto& mailbox) {
        return std::make_unique<RunnerStage>(index, device, hub, mailbox);
      }});
  ASSIGN_OR_RETURN(const v1::Job ended, cluster.Run(job));
  if (ended.state() != v1::Job::STATE_SUCCEEDED) {
    return absl::AbortedError(ended.cause().message());
  }
  return nlohmann::json::parse(ended.summary_json())["weights_sha256"]
      .get<std::string>();
}

}  // namespace
}  // namespace penstock::testing

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "in_process_job JOB.yaml RUN_DIR [KEY=VALUE ...]\n";
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  penstock::v1::CreateJobRequest request;
  request.set_file(std::string(std::istreambuf_iterator<char>(file), {}));
  request.set_file_name(argv[1]);
  request.set_base_directory(
      std::filesystem::absolute(argv[1]).parent_path().string());
  request.set_run_directory(std::filesystem::absolute(argv[2]).string());
  for (int i = 3; i < argc; ++i) request.add_overrides(argv[i]);
  const auto sha256 = penstock::testing::RunJob(request);
  if (!sha256.ok()) {
    std::cerr << sha256.status() << "\n";
    return 1;
  }
  std::cout << *sha256 << "\n";
}
