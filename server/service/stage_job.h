// One assignment of this stage: everything that exists from Assign to Abort.
#ifndef PENSTOCK_SERVER_SERVICE_STAGE_JOB_H_
#define PENSTOCK_SERVER_SERVICE_STAGE_JOB_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/time/clock.h"
#include "penstock/v1/coordination_service.pb.h"
#include "server/data/dataset.h"
#include "server/device/device.h"
#include "server/executor/deadline_watch.h"
#include "server/executor/executor.h"
#include "server/executor/executor_listener.h"
#include "server/executor/micro_batch_source.h"
#include "server/executor/model_writer.h"
#include "server/executor/stage_assignment.h"
#include "server/model/parameters.h"
#include "server/service/job_runner.h"
#include "server/transport/transport.h"

namespace penstock::server::service {

// What the daemon has whatever the job: given to each StageJob, borrowed.
struct StageResources {
  std::string stage_name;
  // A device with these bits. FailedPrecondition, reason NUMERICS_MISMATCH.
  // `threads` 0: the daemon decides.
  std::function<absl::StatusOr<std::unique_ptr<device::Device>>(
      const std::string& numerics_id, int threads)>
      make_device;
  const common::time::Clock* clock = nullptr;
  // Makes the transport of an epoch on the daemon's data listener.
  std::function<absl::StatusOr<std::unique_ptr<transport::Transport>>(
      const transport::TransportOptions&)>
      make_transport;
  // Memory of this process, bytes.
  std::function<int64_t()> resident_bytes;
};

// What a job reads from files: its data, opened (which reads all of it) once
// for the check of inputs and for the assignment that follows, and how far
// reading, or making weights where none are read, has come. Thread-compatible:
// confined to the runner's worker, but for pieces().
class JobInputs {
 public:
  // `stopped` is asked after each piece; its error ends the reading and is
  // returned.
  explicit JobInputs(std::function<absl::Status()> stopped)
      : stopped_(std::move(stopped)) {}

  // As data::Dataset::Open. Sequence length and vocabulary may be open (0) at
  // the check; Internal when the assignment's are not those of the open data.
  absl::StatusOr<std::shared_ptr<const data::Dataset>> OpenData(
      const v1::DataConfig& data, const model::ModelConfig& model);

  // The job is over: its files may be others when the next one opens them.
  void Reset();

  // A piece of data or of a tensor is read or made: what shows that the stage
  // gets on.
  absl::Status PieceDone() {
    pieces_.fetch_add(1, std::memory_order_relaxed);
    return stopped_();
  }
  // All of them so far. Any thread.
  int64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

 private:
  const std::function<absl::Status()> stopped_;
  std::string key_;  // Files, formats and share of what is open.
  std::shared_ptr<const data::Dataset> dataset_;
  std::atomic<int64_t> pieces_{0};
};

// What CheckInputs finds: data, model files; or why it failed, with the key of
// the job file that is to blame. Blocks on files.
v1::InputsChecked CheckInputs(const v1::CheckInputs& request,
                              const std::string& stage_name, JobInputs& inputs);

// Owns device memory, parameters, data, transport and executor of one epoch.
// Thread-compatible: the runner's worker builds and destroys it; Run, Abort,
// TellsFailure and the reads may come from any thread in between.
class StageJob {
 public:
  // Loads or initialises the weights and starts the executor; blocks on files.
  // Does not wait for peers: Connect does.
  static absl::StatusOr<std::unique_ptr<StageJob>> Create(
      const StageResources& resources, const v1::Assignment& assignment,
      int64_t epoch, JobInputs& inputs, JobRunner::Report report);
  ~StageJob();

  // Waits until every edge stands, as long as the coordinator's assembly may
  // take, and says what was built.
  absl::StatusOr<v1::StageReady> Connect();

  // As Executor::Enqueue.
  absl::Status Run(const RunAction& work);
  // Whether the executor has told why this job ends, or is about to. It knows
  // the edge, by which the coordinator finds the stage to blame: an error of
  // Connect() or Run() is then no failure of its own.
  bool TellsFailure() const;
  void Abort(const absl::Status& cause);

  int64_t epoch() const { return epoch_; }
  int rank() const { return assignment_.rank; }
  const std::string& job_id() const { return job_id_; }
  // Edges that Connect() still waits for.
  std::vector<v1::Edge> unconnected() const;
  executor::ExecutorStatus status() const { return executor_->status(); }

 private:
  class Listener;

  StageJob(const StageResources& resources, std::string job_id,
           executor::StageAssignment assignment, int64_t epoch);
  absl::Status OpenSource(const v1::Assignment& assignment, JobInputs& inputs);
  absl::Status LoadWeights(const v1::Assignment& assignment, JobInputs& inputs);
  absl::Status StartExecutor(const v1::Assignment& assignment);

  const StageResources& resources_;
  const std::string job_id_;
  const executor::StageAssignment assignment_;
  const int64_t epoch_;
  // In dependency order: each uses those above it.
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<executor::MicroBatchSource> source_;  // Null: reads no data.
  std::unique_ptr<executor::ModelWriter> writer_;
  std::unique_ptr<model::ParameterStore> parameters_;
  std::unique_ptr<Listener> listener_;
  transport::Transport* transport_ = nullptr;  // The executor's.
  std::unique_ptr<executor::Executor> executor_;
  std::unique_ptr<executor::DeadlineWatch> watch_;
};

}  // namespace penstock::server::service

#endif  // PENSTOCK_SERVER_SERVICE_STAGE_JOB_H_
