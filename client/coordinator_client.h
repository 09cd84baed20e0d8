// The coordinator's services as the CLI calls them: blocking, with deadlines.
#ifndef PENSTOCK_CLIENT_COORDINATOR_CLIENT_H_
#define PENSTOCK_CLIENT_COORDINATOR_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"
#include "penstock/v1/plan_service.pb.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::client {

// Thread-safe. Every unary call ends by its deadline with the server's status,
// or one that names the address: Unavailable also where something answers that
// is no coordinator. Cancelled: by CancelCalls(). WatchJob lasts as long as its
// job: it ends with the server's stream, with the connection (a peer that is
// gone is noticed by keepalive, common/rpc/grpc_settings.h), or by
// CancelWatch().
class CoordinatorClient {
 public:
  struct Options {
    common::rpc::Address address;
    absl::Duration timeout = absl::Seconds(10);  // Of a unary call.
    // Of one whose answer is computed: a schedule of the largest size.
    absl::Duration computing = absl::Seconds(60);
  };
  static std::unique_ptr<CoordinatorClient> Connect(const Options& options);
  virtual ~CoordinatorClient() = default;

  // Ends the unary calls that wait for an answer, and all that are made later,
  // at once. Idempotent.
  virtual void CancelCalls() = 0;

  // Waits until the server answers, for `timeout` at most.
  virtual absl::Status AwaitServing(absl::Duration timeout) = 0;
  // "SERVING", "NOT_SERVING", ... of a name of grpc.health.v1.
  virtual absl::StatusOr<std::string> Health(const std::string& service) = 0;

  virtual absl::StatusOr<v1::Job> CreateJob(
      const v1::CreateJobRequest& request) = 0;
  // At the latest after `timeout`, for callers who are in a hurry.
  virtual absl::StatusOr<v1::Job> CancelJob(const std::string& job_id,
                                            absl::Duration timeout) = 0;

  // Calls `visit` for each event until the stream ends, `visit` returns false,
  // or CancelWatch() is called from another thread. OK in all three cases.
  // `resume_after` is kept up to date for watching on after an error.
  virtual absl::Status WatchJob(
      const std::string& job_id, int64_t& resume_after,
      const std::function<bool(const v1::JobEvent&)>& visit) = 0;
  virtual void CancelWatch() = 0;

  virtual absl::StatusOr<v1::ListStagesResponse> ListStages() = 0;
  virtual absl::Status ReportStageExit(
      const v1::ReportStageExitRequest& request) = 0;

  virtual absl::StatusOr<v1::SimulateScheduleResponse> SimulateSchedule(
      const v1::SimulateScheduleRequest& request) = 0;
  virtual absl::StatusOr<v1::VerifyScheduleResponse> VerifySchedule(
      const v1::VerifyScheduleRequest& request) = 0;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_COORDINATOR_CLIENT_H_
