// A coordinator that finds every job file right, and refuses the job itself;
// from then on it writes to the job's run directory without a pause, as one
// does whose client gave up. Or, with argv[3], answers nothing about any job,
// and makes that file when it is asked. Serves on argv[1] until it is killed; a
// line on descriptor argv[2] says that it does.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "common/rpc/grpc_status.h"
#include "common/sync/mutex.h"
#include "penstock/v1/job_service.grpc.pb.h"

namespace penstock {
namespace {

class RefusesJobs final : public v1::JobService::CallbackService {
 public:
  // `asked`: the file of one that does not answer; "": it answers.
  explicit RefusesJobs(const std::string& asked) : asked_(asked) {}

  // The run directory of the first job that was refused.
  std::string AwaitDirectory() {
    refused_.WaitForNotification();
    common::sync::MutexLock lock(&mutex_);
    return directory_;
  }

 private:
  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::Job* job) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (!asked_.empty()) {
      std::ofstream file(asked_);
      return reactor;
    }
    if (request->validate_only()) {
      job->set_name("tiny");
      job->set_stages(2);
      job->set_device("cpu");
      reactor->Finish(grpc::Status::OK);
      return reactor;
    }
    {
      common::sync::MutexLock lock(&mutex_);
      directory_ = request->run_directory();
    }
    if (!refused_.HasBeenNotified()) refused_.Notify();
    reactor->Finish(common::rpc::ToGrpcStatus(
        absl::InvalidArgumentError("refused after all")));
    return reactor;
  }

  const std::string asked_;
  common::sync::Notification refused_;
  common::sync::Mutex mutex_;
  std::string directory_ ABSL_GUARDED_BY(mutex_);
};

int Main(const char* address, int ready_fd, const char* asked) {
  RefusesJobs service(asked);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  if (ready_fd >= 0 && write(ready_fd, "\n", 1) != 1) return 1;
  const std::filesystem::path directory = service.AwaitDirectory();
  while (true) {
    std::error_code ignored;
    std::filesystem::create_directories(directory, ignored);
    std::ofstream(directory / "job.yaml") << "late\n";
  }
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "penstock_refusing_coordinator ADDRESS [READY_FD [FILE]]\n");
    return 2;
  }
  return penstock::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : -1,
                        argc > 3 ? argv[3] : "");
}
