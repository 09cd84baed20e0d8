// penstock_submit_job ADDRESS JOB.yaml RUN_DIR: a job for a coordinator and
// stages that a test has started itself, as `penstock run` asks for one. Waits
// for its end; what became of it stands in RUN_DIR.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/coordinator_client.h"
#include "common/rpc/address.h"
#include "common/status/status_macros.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock {
namespace {

absl::Status Submit(const char* where, const char* file, const char* run_dir) {
  ASSIGN_OR_RETURN(const common::rpc::Address address,
                   common::rpc::ParseAddress(where));
  const auto client = client::CoordinatorClient::Connect(
      {.address = address, .timeout = absl::Seconds(30)});
  std::ifstream text(file, std::ios::binary);
  v1::CreateJobRequest request;
  request.set_file(std::string(std::istreambuf_iterator<char>(text), {}));
  request.set_file_name(file);
  request.set_base_directory(
      std::filesystem::absolute(file).parent_path().string());
  request.set_run_directory(std::filesystem::absolute(run_dir).string());
  ASSIGN_OR_RETURN(const v1::Job job, client->CreateJob(request));
  int64_t revision = 0;
  return client->WatchJob(job.id(), revision,
                          [](const v1::JobEvent&) { return true; });
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("penstock_submit_job ADDRESS JOB.yaml RUN_DIR\n", stderr);
    return 2;
  }
  const absl::Status status = penstock::Submit(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
