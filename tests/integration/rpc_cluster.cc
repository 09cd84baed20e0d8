#include "tests/integration/rpc_cluster.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::testing {

void RpcCluster::StartCoordinator(const coordinator::service::Limits& limits) {
  coordinator::Coordinator::Options options;
  options.limits = limits;
  options.listen = Listen("coordinator");
  options.state_directory = dir_.Path("state");
  options.embedded = true;
  auto started = coordinator::Coordinator::Start(options);
  ASSERT_OK(started.status());
  coordinator_ = *std::move(started);
  client_ = client::CoordinatorClient::Connect(
      {.address = coordinator_->address(), .timeout = absl::Seconds(30)});
  ASSERT_OK(client_->AwaitServing(kRpcLimit));
}

void RpcCluster::StartStages(int count) {
  for (int i = 0; i < count; ++i) {
    server::StageDaemon::Options options;
    options.name = absl::StrCat("stage-", i);
    options.coordinator = coordinator_->address();
    options.listen = Listen(options.name);
    options.data_address = data_address_;
    options.device = "reference";
    options.threads = 1;
    auto stage = server::StageDaemon::Start(
        options, [](const server::StageDaemon::End&) {});
    ASSERT_OK(stage.status());
    stages_.push_back(*std::move(stage));
  }
}

common::rpc::Address RpcCluster::Listen(const std::string& name) const {
  return absl::StartsWith(data_address_, "[")
             ? *common::rpc::ParseAddress(absl::StrCat(data_address_, ":0"))
             : Socket(name);
}

common::rpc::Address RpcCluster::Socket(const std::string& name) const {
  return *common::rpc::ParseAddress(
      absl::StrCat("unix:", dir_.Path(name), ".sock"));
}

v1::CreateJobRequest RpcCluster::Request(const SmallJob& job) {
  constexpr int kGlobal = 8;
  dir_.Write("text.txt", std::string(4000, 'a') + std::string(4000, 'b'));
  v1::CreateJobRequest request;
  request.set_file(absl::StrCat(
      "name: tiny\n"
      "model: {family: gpt2, layers: 2, width: 16, heads: 2, context: 16}\n"
      "data: {train: text.txt, validation: 10%}\n"
      "batch: {global: ",
      kGlobal, ", micro_batch: ", kGlobal / job.micro_batches,
      "}\n"
      "device: reference\n"
      "evaluate: {every: ",
      job.evaluate_every,
      ", batches: 1}\n"
      "pipeline: {stages: ",
      job.stages, "}\nsteps: ", job.steps, "\n"));
  request.set_file_name("tiny.yaml");
  request.set_base_directory(dir_.path());
  request.set_run_directory(dir_.Path("run"));
  return request;
}

v1::Job RpcCluster::Watch(const std::string& id,
                          std::vector<v1::JobEvent>& events) {
  int64_t revision = 0;
  v1::Job last;
  EXPECT_OK(client_->WatchJob(id, revision, [&](const v1::JobEvent& event) {
    events.push_back(event);
    if (event.has_job()) last = event.job();
    return true;
  }));
  return last;
}

}  // namespace penstock::testing
