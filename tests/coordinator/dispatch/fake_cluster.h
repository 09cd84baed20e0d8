// A Core and fake stages in one process: carries out actions in order, with
// time that the test moves. Messages arrive at once; the cluster of
// simulation_test.cc delays them.
#ifndef PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_CLUSTER_H_
#define PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/dispatch/core.h"
#include "coordinator/jobs/in_memory_job_store.h"
#include "tests/coordinator/dispatch/fake_stage.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::coordinator::dispatch {

// A job of a tiny GPT-2: K stages, M micro-batches, 3 steps.
NewJob TinyJob(int stages, int micro_batches, int64_t steps = 3);

// Thread-compatible.
class FakeCluster {
 public:
  explicit FakeCluster(Options options = {});

  FakeStage& AddStage(const std::string& name, const std::string& incarnation);
  // K stages "stage-0", ... registered and connected.
  void Start(int stages);
  FakeStage& stage(int i) { return *stages_.at("stage-" + std::to_string(i)); }
  // Three stages run TinyJob(3, 4, 10); its barrier waits for stage-2.
  void RunThreeStages();
  void Connect(FakeStage& stage);
  // Both directions are dead; what was under way is lost.
  void Disconnect(FakeStage& stage);

  // Plans it first.
  absl::StatusOr<v1::Job> Create(const NewJob& job);
  // The parent of a stage says how its process ended.
  absl::Status ReportExit(const std::string& name, int64_t pid, int code);
  // Delivers until nothing is under way.
  void Run();
  // Time passes, in ticks as the core asks for them; heartbeats of connected
  // stages that beat keep their leases.
  void Advance(absl::Duration duration);
  // Time passes without the core; then it ticks.
  void Pause(absl::Duration duration);
  std::map<std::string, bool> silent;  // Stages without heartbeats.
  // What a stage's heartbeats say.
  std::map<std::string, v1::Heartbeat> beats;

  Now now() const { return {clock.Monotonic(), clock.Now()}; }
  v1::Job Job() const;  // The newest.
  // The same, which is expected to have ended so.
  v1::Job Ended(v1::Job::State state, v1::Job::StateReason reason) const;
  // Contents of a file in the result folder; "" where it was never written.
  std::string File(const std::string& name) const;
  bool AnyFile() const { return !files_.empty(); }
  // Occurrences of this kind, oldest first.
  std::vector<v1::Occurrence> Occurrences(const std::string& kind) const;
  const std::vector<v1::JobEvent>& events() const { return events_; }

  tests::fakes::FakeClock clock;
  jobs::InMemoryJobStore store;
  std::unique_ptr<Core> core;
  std::vector<ProbeMonitor> probes;
  std::vector<CloseSession> closed;
  std::vector<ForgetJob> forgotten;

  // Of job folders, as they were asked for, but kFlush; all are answered at
  // once, unless they hang.
  std::vector<ChangeJobFolder> changes;
  bool changes_folders = true;
  // Why a kind of change fails.
  std::map<ChangeJobFolder::Change, absl::Status> folder_failures;

  // As they were ordered; answered at once, unless the planner has more to do.
  std::vector<MakePlan> plans;
  bool makes_plans = true;
  void Answer(PlanMade made);

  void CarryOut(Actions& actions);

 private:
  FolderChanged Change(const ChangeJobFolder& change);

  std::map<std::string, std::unique_ptr<FakeStage>> stages_;
  std::map<SessionId, FakeStage*> sessions_;
  SessionId next_session_ = 1;
  std::map<std::string, std::string> files_;
  std::vector<v1::JobEvent> events_;
  std::string job_id_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_CLUSTER_H_
