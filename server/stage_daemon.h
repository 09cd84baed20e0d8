// The stage daemon's composition root: builds everything in dependency order.
#ifndef PENSTOCK_SERVER_STAGE_DAEMON_H_
#define PENSTOCK_SERVER_STAGE_DAEMON_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "penstock/v1/common.pb.h"

namespace penstock::server {

// Registers and serves until destroyed. Thread-safe.
class StageDaemon {
 public:
  struct Options {
    common::rpc::Address coordinator;
    common::rpc::Address listen;  // StageMonitorService.
    // Numeric address of the interface that data travel on.
    std::string data_address;
    std::string name;
    std::string pool = "default";
    std::string device = "cpu";
    std::string cpu_isa;  // Caps the ISA level of "cpu"; empty: no cap.
    int threads = 0;      // Of jobs that leave it to the stage; 0: all cores.
    std::string host;
    v1::BuildInfo build;
  };

  // Why the daemon ends by itself; main exits with the code.
  struct End {
    int exit_code = 0;
    absl::Status status;
  };

  // `on_end` is called once, on a thread of the daemon's. InvalidArgument: an
  // unknown device, a bad name; AlreadyExists: the address is in use.
  static absl::StatusOr<std::unique_ptr<StageDaemon>> Start(
      const Options& options, std::function<void(const End&)> on_end);
  virtual ~StageDaemon() = default;

  // Tells the coordinator, and ends with exit code 0.
  virtual void Stop() = 0;
};

}  // namespace penstock::server

#endif  // PENSTOCK_SERVER_STAGE_DAEMON_H_
