// StageMonitorService: what a stage daemon itself tells monitors.
#ifndef PENSTOCK_SERVER_SERVICE_MONITOR_SERVICE_H_
#define PENSTOCK_SERVER_SERVICE_MONITOR_SERVICE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "common/time/clock.h"
#include "penstock/v1/stage_monitor_service.pb.h"

namespace penstock::server::service {

// Listens until destroyed. Thread-safe.
class MonitorServer {
 public:
  struct Options {
    common::rpc::Address address;
    // Makes a snapshot; called on gRPC threads, must not block.
    std::function<v1::StageStatus()> status;
    // WatchStage streams; one more is answered RESOURCE_EXHAUSTED.
    int watches = 64;
  };

  // Errors as common::rpc::RpcServer::Start. Borrows `clock`.
  static absl::StatusOr<std::unique_ptr<MonitorServer>> Start(
      const Options& options, const common::time::Clock& clock);
  virtual ~MonitorServer() = default;

  // With the port that the kernel chose.
  virtual const common::rpc::Address& address() const = 0;

  // What Health says of "readiness".
  virtual void SetReady(bool ready) = 0;

  // The daemon calls it at most ten times a second, also when nothing happens:
  // every WatchStage stream gets the status if it changed, or after 10 s.
  virtual void Publish() = 0;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_MONITOR_SERVICE_H_
