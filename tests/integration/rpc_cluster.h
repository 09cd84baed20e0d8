// A whole cluster over real gRPC and TCP in one process: coordinator, stage
// daemons and client, so that ThreadSanitizer sees every reactor and thread.
#ifndef PENSTOCK_TESTS_INTEGRATION_RPC_CLUSTER_H_
#define PENSTOCK_TESTS_INTEGRATION_RPC_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/coordinator_client.h"
#include "common/rpc/address.h"
#include "coordinator/coordinator.h"
#include "gtest/gtest.h"
#include "penstock/v1/job_service.pb.h"
#include "server/stage_daemon.h"
#include "tests/fakes/temp_dir.h"

namespace penstock::testing {

// What a test waits for comes long before, or never.
inline constexpr absl::Duration kRpcLimit = absl::Seconds(120);

// A job that real daemons do in a second.
struct SmallJob {
  int stages = 2;
  int steps = 2;
  int micro_batches = 4;   // They divide 8.
  int evaluate_every = 2;  // Steps.
};

// Thread-compatible: confined to the test's thread.
class RpcCluster : public ::testing::Test {
 protected:
  void StartCoordinator(const coordinator::service::Limits& limits = {});
  // "stage-0", ... of the device `reference`.
  void StartStages(int count);

  // A Unix socket, or a port of the interface for data where that is IPv6.
  common::rpc::Address Listen(const std::string& name) const;
  common::rpc::Address Socket(const std::string& name) const;

  // Of a file "tiny.yaml" of 8 lines, whose job is named "tiny" and writes to
  // the folder "run".
  v1::CreateJobRequest Request(const SmallJob& job);

  // Watches until the end; returns the job, and its events.
  v1::Job Watch(const std::string& id, std::vector<v1::JobEvent>& events);

  std::string data_address_ = "127.0.0.1";
  tests::fakes::TempDir dir_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  std::unique_ptr<client::CoordinatorClient> client_;
  std::vector<std::unique_ptr<server::StageDaemon>> stages_;
};

}  // namespace penstock::testing

#endif  // PENSTOCK_TESTS_INTEGRATION_RPC_CLUSTER_H_
