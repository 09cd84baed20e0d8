#include "tests/coordinator/dispatch/fake_cluster.h"

#include <algorithm>
#include <utility>

#include "common/status/error_details.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/job_plan.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {

NewJob TinyJob(int stages, int micro_batches, int64_t steps) {
  NewJob job;
  job.spec.name = "tiny";
  job.spec.model = {.family = spec::ModelFamily::kGpt2,
                    .layers = 4,
                    .width = 8,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_dim = 4,
                    .ffn_width = 32,
                    .context = 16,
                    .vocab = 256};
  job.spec.data.train = "/jobs/tiny/train.txt";
  job.spec.data.sequence_length = 16;
  job.spec.batch = {.global = micro_batches,
                    .micro_batch = 1,
                    .micro_batches = micro_batches};
  job.spec.pipeline.stages = stages;
  job.spec.steps = steps;
  job.request.set_run_directory("/runs/tiny");
  job.positions = spec::PositionMap("tiny.yaml");
  return job;
}

FakeCluster::FakeCluster(Options options) {
  uint64_t next = 0;
  options.random = [next]() mutable { return next++; };
  core = std::make_unique<Core>(options, store);
}

FakeStage& FakeCluster::AddStage(const std::string& name,
                                 const std::string& incarnation) {
  auto& slot = stages_[name];
  slot = std::make_unique<FakeStage>(name, incarnation);
  return *slot;
}

void FakeCluster::Start(int stages) {
  for (int i = 0; i < stages; ++i) {
    FakeStage& stage =
        AddStage("stage-" + std::to_string(i),
                 "00000000-0000-4000-8000-00000000000" + std::to_string(i));
    Actions actions;
    ASSERT_TRUE(core->RegisterStage(stage.Registration(), now(), actions).ok());
    CarryOut(actions);
    Connect(stage);
  }
}

void FakeCluster::RunThreeStages() {
  Start(3);
  stage(2).reports_steps = false;
  ASSERT_TRUE(Create(TinyJob(3, 4, 10)).ok());
  Run();
  ASSERT_EQ(Job().state(), v1::Job::STATE_RUNNING);
}

void FakeCluster::Connect(FakeStage& stage) {
  const SessionId session = next_session_++;
  sessions_[session] = &stage;
  Actions actions;
  const absl::Status status =
      core->OpenSession(session, stage.Hello(), now(), actions);
  ASSERT_TRUE(status.ok()) << status;
  CarryOut(actions);
}

void FakeCluster::Disconnect(FakeStage& stage) {
  stage.outbox().clear();
  for (const auto& [session, owner] : sessions_) {
    if (owner != &stage) continue;
    const SessionId broken = session;
    sessions_.erase(broken);
    Actions actions;
    core->BreakSession(broken, now(), actions);
    CarryOut(actions);
    return;
  }
}

absl::StatusOr<v1::Job> FakeCluster::Create(const NewJob& job) {
  ASSIGN_OR_RETURN(const PlannedJob planned, PlanJob(job));
  Actions actions;
  absl::StatusOr<v1::Job> created = core->CreateJob(planned, now(), actions);
  if (created.ok()) job_id_ = created->id();
  CarryOut(actions);
  return created;
}

FolderChanged FakeCluster::Change(const ChangeJobFolder& change) {
  FolderChanged done{.job_id = change.job_id, .change = change.change};
  const std::string folder = change.directory + "/" + change.name + "/";
  std::map<std::string, std::string> files;
  for (auto& [path, contents] : files_) {
    const bool inside = path.rfind(folder, 0) == 0;
    if (inside && change.change == ChangeJobFolder::Change::kRemove) continue;
    std::string name = path;
    if (inside && change.change == ChangeJobFolder::Change::kPublish) {
      name =
          change.directory + "/" + change.to + "/" + path.substr(folder.size());
    }
    files[name] = contents;
  }
  files_ = std::move(files);
  for (const auto& expected : change.expected) {
    const FakeStage& stage = *stages_.at(expected.stage_name);
    const bool written = stage.probe().directory() + "/" == folder &&
                         stage.probe().file() == expected.name &&
                         stage.probe().contents() == expected.contents;
    if (written && stage.shares_disk) continue;
    done.status = common::status::WithReason(
        absl::NotFoundError(expected.stage_name + " on host " + expected.host +
                            " has another disk"),
        "INPUT_NOT_VISIBLE");
    done.stage_name = expected.stage_name;
    break;
  }
  const auto failure = folder_failures.find(change.change);
  if (failure != folder_failures.end()) done.status = failure->second;
  return done;
}

void FakeCluster::Answer(PlanMade made) {
  Actions actions;
  core->PlanMade(std::move(made), now(), actions);
  CarryOut(actions);
}

void FakeCluster::CarryOut(Actions& actions) {
  std::vector<FolderChanged> changed;
  std::vector<PlanMade> planned;
  for (Action& action : actions) {
    if (auto* send = std::get_if<SendToStage>(&action)) {
      const auto it = sessions_.find(send->session);
      if (it != sessions_.end()) it->second->Take(send->message);
    } else if (auto* close = std::get_if<CloseSession>(&action)) {
      sessions_.erase(close->session);
      closed.push_back(*close);
    } else if (auto* probe = std::get_if<ProbeMonitor>(&action)) {
      probes.push_back(*probe);
    } else if (auto* write = std::get_if<WriteJobFile>(&action)) {
      std::string& file = files_[write->directory + "/" + write->name];
      if (write->mode == WriteJobFile::Mode::kReplace) file.clear();
      file += write->contents;
    } else if (auto* change = std::get_if<ChangeJobFolder>(&action)) {
      if (change->change != ChangeJobFolder::Change::kFlush) {
        changes.push_back(*change);
      }
      changed.push_back(Change(*change));
    } else if (auto* plan = std::get_if<MakePlan>(&action)) {
      plans.push_back(*plan);
      if (makes_plans) planned.push_back(MakePlanOf(*plan));
    } else if (auto* forget = std::get_if<ForgetJob>(&action)) {
      forgotten.push_back(*forget);
    } else if (auto* publish = std::get_if<PublishJob>(&action)) {
      if (publish->job_id == job_id_ || job_id_.empty()) {
        events_.push_back(publish->event);
      }
    }
  }
  actions.clear();
  for (PlanMade& made : planned) Answer(std::move(made));
  for (const FolderChanged& done : changed) {
    if (done.change == ChangeJobFolder::Change::kRemove || !changes_folders) {
      continue;
    }
    Actions more;
    core->FolderChanged(done, now(), more);
    CarryOut(more);
  }
}

void FakeCluster::Run() {
  for (bool moved = true; moved;) {
    moved = false;
    const auto sessions = sessions_;
    for (const auto& [session, stage] : sessions) {
      if (stage->outbox().empty() || sessions_.count(session) == 0) continue;
      const v1::StageMessage message = stage->outbox().front();
      stage->outbox().pop_front();
      moved = true;
      Actions actions;
      core->Receive(session, message, now(), actions).IgnoreError();
      CarryOut(actions);
    }
  }
}

void FakeCluster::Advance(absl::Duration duration) {
  const auto end = clock.Monotonic() + duration;
  while (clock.Monotonic() < end) {
    const auto next =
        std::min({end, core->NextTick(), clock.Monotonic() + absl::Seconds(1)});
    clock.Advance(std::max(next - clock.Monotonic(), absl::Nanoseconds(1)));
    const auto sessions = sessions_;
    for (const auto& [session, stage] : sessions) {
      if (silent[stage->name()]) continue;
      v1::StageMessage beat;
      *beat.mutable_heartbeat() = beats[stage->name()];
      beat.mutable_heartbeat()->set_queued_commands(1);
      beat.mutable_heartbeat()->set_progress(stage->progress);
      Actions actions;
      core->Receive(session, beat, now(), actions).IgnoreError();
      CarryOut(actions);
    }
    Actions actions;
    core->Tick(now(), actions);
    CarryOut(actions);
    Run();
  }
}

void FakeCluster::Pause(absl::Duration duration) {
  Actions actions;
  core->Tick(now(), actions);
  clock.Advance(duration);
  core->Tick(now(), actions);
  CarryOut(actions);
}

absl::Status FakeCluster::ReportExit(const std::string& name, int64_t pid,
                                     int code) {
  v1::ReportStageExitRequest request;
  request.set_stage_name(name);
  request.set_pid(pid);
  request.set_exit_code(code);
  Actions actions;
  const absl::Status status = core->ReportStageExit(request, now(), actions);
  CarryOut(actions);
  return status;
}

v1::Job FakeCluster::Ended(v1::Job::State state,
                           v1::Job::StateReason reason) const {
  const v1::Job job = Job();
  EXPECT_EQ(job.state(), state) << job.DebugString();
  EXPECT_EQ(job.reason(), reason) << job.DebugString();
  return job;
}

v1::Job FakeCluster::Job() const {
  const auto job = core->GetJob(job_id_);
  return job.ok() ? *job : v1::Job();
}

std::string FakeCluster::File(const std::string& name) const {
  const auto it = files_.find("/runs/tiny/" + name);
  return it == files_.end() ? "" : it->second;
}

std::vector<v1::Occurrence> FakeCluster::Occurrences(
    const std::string& kind) const {
  std::vector<v1::Occurrence> found;
  for (const v1::JobEvent& event : events_) {
    if (event.has_occurrence() && event.occurrence().kind() == kind) {
      found.push_back(event.occurrence());
    }
  }
  return found;
}

}  // namespace penstock::coordinator::dispatch
