#include "server/stage_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/ids/generated_ids.h"
#include "common/ids/names.h"
#include "common/ids/random.h"
#include "common/process/build_info.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/time/real_clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/stage_monitor_service.pb.h"
#include "server/backends.h"
#include "server/device/host/memory_limit.h"
#include "server/service/grpc_coordinator_link.h"
#include "server/service/monitor_service.h"
#include "server/service/session_loop.h"
#include "server/service/stage_job_runner.h"
#include "server/transport/tcp/listener.h"

namespace penstock::server {
namespace {

// How often watchers of the monitor service are given a look.
constexpr absl::Duration kPublishInterval = absl::Milliseconds(200);

// Where to listen for the data plane: the kernel's choice of a port there. The
// brackets of an IPv6 address may be left out.
std::string DataAddress(const std::string& interface) {
  const bool bare = absl::StrContains(interface, ':') && interface[0] != '[';
  return bare ? absl::StrCat("[", interface, "]:0")
              : absl::StrCat(interface, ":0");
}

int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class StageProcess final : public StageDaemon {
 public:
  StageProcess(const Options& options, std::function<void(const End&)> on_end)
      : options_(options), on_end_(std::move(on_end)) {}

  ~StageProcess() override {
    CloseMonitor();                       // Nobody asks any more;
    if (loop_ != nullptr) loop_->Join();  // nothing is decided,
    runner_.reset();                      // done,
    link_.reset();                        // or said;
    loop_.reset();                        // nobody listens.
  }

  absl::Status Start() {
    RETURN_IF_ERROR(common::ids::CheckStageName(options_.name));
    ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                     NumericsIds(options_.device, options_.cpu_isa));
    ASSIGN_OR_RETURN(
        listener_,
        transport::tcp::Listener::Open(
            {.address = DataAddress(options_.data_address)}, clock_, random_));
    ASSIGN_OR_RETURN(monitor_, service::MonitorServer::Start(
                                   {.address = options_.listen,
                                    .status = [this] { return Status(); }},
                                   clock_));
    resources_ = Resources();
    registration_ = Registration(ids);
    link_ = service::MakeGrpcCoordinatorLink(options_.coordinator);
    loop_ = std::make_unique<service::SessionLoop>(
        service::SessionLoop::Options{.registration = registration_}, clock_,
        *link_, [this](const service::SessionEnd& end) {
          on_end_({.exit_code = end.exit_code, .status = end.status});
        });
    runner_ = std::make_unique<service::StageJobRunner>(
        resources_, [this](int64_t epoch, v1::StageMessage message) {
          loop_->Report(epoch, std::move(message));
        });
    loop_->Start(*runner_);
    {
      common::sync::MutexLock lock(&mutex_);
      started_ = true;
    }
    publisher_ = std::thread([this] { Publish(); });
    return absl::OkStatus();
  }

  // The monitor's socket closes before the session does: by that the
  // coordinator knows a daemon that went from a session that broke.
  void Stop() override {
    CloseMonitor();
    loop_->Stop();
  }

 private:
  void CloseMonitor() {
    if (publisher_.joinable()) {
      ending_.Notify();
      publisher_.join();
    }
    monitor_.reset();
  }

  service::StageResources Resources() {
    service::StageResources resources;
    resources.stage_name = options_.name;
    resources.make_device = [this](const std::string& numerics_id,
                                   int threads) {
      return CreateDevice({.kind = options_.device,
                           .numerics_id = numerics_id,
                           .threads = threads == 0 ? Threads() : threads,
                           .clock = &clock_});
    };
    resources.clock = &clock_;
    resources.make_transport =
        [this](const transport::TransportOptions& options) {
          return listener_->CreateTransport(options);
        };
    resources.resident_bytes = ResidentBytes;
    return resources;
  }

  // Of jobs that leave it to the stage.
  int Threads() const {
    if (options_.threads != 0) return options_.threads;
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }

  v1::RegisterStageRequest Registration(const std::vector<std::string>& ids) {
    v1::RegisterStageRequest request;
    request.set_stage_name(options_.name);
    request.set_incarnation(common::ids::MakeUuid(random_));
    request.set_pool(options_.pool);
    request.mutable_device()->set_kind(options_.device);
    const device::host::MemoryLimit memory = device::host::FindMemoryLimit();
    request.mutable_device()->set_memory_bytes(memory.bytes);
    request.mutable_device()->set_memory_group(memory.group);
    request.mutable_device()->set_threads(Threads());
    for (const std::string& id : ids) request.add_numerics_ids(id);
    request.mutable_protocol()->set_lowest(common::process::kLowestProtocol);
    request.mutable_protocol()->set_highest(common::process::kHighestProtocol);
    *request.mutable_build() = options_.build;
    request.set_host(options_.host);
    request.set_pid(getpid());
    request.set_monitor_address(monitor_->address().ToString());
    request.set_data_address(listener_->address());
    return request;
  }

  v1::StageStatus Status() {
    v1::StageStatus status;
    status.set_name(options_.name);
    {
      common::sync::MutexLock lock(&mutex_);
      if (!started_) return status;
    }
    status.set_incarnation(registration_.incarnation());
    loop_->Describe(status);
    runner_->Describe(status);
    return status;
  }

  void Publish() {
    while (!ending_.WaitForNotificationWithTimeout(kPublishInterval)) {
      monitor_->SetReady(Status().coordinator_connected());
      monitor_->Publish();
    }
  }

  // Constant after Start(). In dependency order.
  const Options options_;
  const std::function<void(const End&)> on_end_;
  const common::time::RealClock clock_;
  const common::ids::RandomSource random_ = common::ids::SystemRandom();
  std::unique_ptr<transport::tcp::Listener> listener_;
  std::unique_ptr<service::MonitorServer> monitor_;
  service::StageResources resources_;
  v1::RegisterStageRequest registration_;
  std::unique_ptr<service::CoordinatorLink> link_;
  std::unique_ptr<service::SessionLoop> loop_;
  std::unique_ptr<service::StageJobRunner> runner_;

  common::sync::Notification ending_;
  std::thread publisher_;
  common::sync::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StageDaemon>> StageDaemon::Start(
    const Options& options, std::function<void(const End&)> on_end) {
  auto daemon = std::make_unique<StageProcess>(options, std::move(on_end));
  RETURN_IF_ERROR(daemon->Start());
  return daemon;
}

}  // namespace penstock::server
