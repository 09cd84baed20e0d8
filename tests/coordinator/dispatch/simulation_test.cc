// The whole core under random delays, reorderings across stages, duplicates,
// broken sessions, and one death, with the promises that hold in every run:
//
//   no step is applied twice, or released before all have reported it (the
//   fake stages check their side); every committed step has one line; the job
//   ends within a bound; it succeeds where nobody died, and otherwise names
//   the stage that died as the first cause; all others are free again.
//
// A run is a function of its seed, which every failure prints.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/dispatch/core.h"
#include "coordinator/dispatch/job_plan.h"
#include "coordinator/jobs/in_memory_job_store.h"
#include "coordinator/jobs/job_state.h"
#include "gtest/gtest.h"
#include "tests/coordinator/dispatch/fake_cluster.h"
#include "tests/coordinator/dispatch/fake_stage.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::coordinator::dispatch {
namespace {

using common::time::MonotonicTime;
using v1::Job;

constexpr absl::Duration kLongestRedial = absl::Seconds(2);

struct Faults {
  double broken_session = 0;  // Chance a message.
  double duplicate = 0;
  bool death = false;  // Of one stage, some time.
};

class World {
 public:
  World(uint64_t seed, int stages, const Faults& faults)
      : random_(seed), faults_(faults) {
    Options options;
    options.random = [this] { return random_(); };
    core_ = std::make_unique<Core>(options, store_);
    for (int i = 0; i < stages; ++i) {
      nodes_.push_back(std::make_unique<Node>());
      nodes_[i]->stage = std::make_unique<FakeStage>(
          "stage-" + std::to_string(i),
          "00000000-0000-4000-8000-00000000000" + std::to_string(i));
      Register(*nodes_[i]);
    }
  }

  void Submit(const NewJob& job) {
    const auto planned = PlanJob(job);
    ASSERT_TRUE(planned.ok()) << planned.status();
    Actions actions;
    const auto created = core_->CreateJob(*planned, now(), actions);
    ASSERT_TRUE(created.ok()) << created.status();
    id_ = created->id();
    CarryOut(actions);
    if (faults_.death) {
      victim_ = static_cast<int>(random_() % nodes_.size());
      After(Uniform(absl::Seconds(2)), [this] { Kill(); });
    }
  }

  // Until the job has ended, or this much time has passed; then a while more:
  // for some of the sessions that break while stages are freed.
  void RunFor(absl::Duration bound) {
    const MonotonicTime end = clock_.Monotonic() + bound;
    while (!Ended() && clock_.Monotonic() < end) Step();
    const MonotonicTime rest = clock_.Monotonic() + kLongestRedial * 10;
    while (clock_.Monotonic() < rest) Step();
  }

  Job job() const { return core_->GetJob(id_).value(); }
  bool Ended() const { return jobs::IsTerminal(job().state()); }
  // The stage that was dead while the job was not over; "" otherwise.
  std::string dead() const { return dead_; }
  int lines() const { return lines_; }
  void CheckAllFree() const {
    for (const v1::Stage& stage : core_->ListStages(now())) {
      if (stage.name() == dead_) continue;
      EXPECT_EQ(stage.state(), v1::Stage::STATE_REGISTERED)
          << stage.DebugString();
    }
  }

 private:
  struct Node {
    std::unique_ptr<FakeStage> stage;
    SessionId session = 0;
    bool dead = false;
    MonotonicTime to_stage, to_core;  // No message overtakes another.
  };
  struct Event {
    MonotonicTime at;
    int64_t order;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  Now now() const { return {clock_.Monotonic(), clock_.Now()}; }
  absl::Duration Uniform(absl::Duration most) {
    return most * (static_cast<double>(random_() % 1000000) / 1e6);
  }
  bool Chance(double chance) {
    return static_cast<double>(random_() % 1000000) / 1e6 < chance;
  }
  void After(absl::Duration delay, std::function<void()> run) {
    events_.push({clock_.Monotonic() + delay, ++order_, std::move(run)});
  }

  void Step() {
    MonotonicTime next =
        std::min(core_->NextTick(), clock_.Monotonic() + absl::Seconds(1));
    if (!events_.empty()) next = std::min(next, events_.top().at);
    clock_.Advance(std::max(next - clock_.Monotonic(), absl::ZeroDuration()));
    if (!events_.empty() && events_.top().at <= clock_.Monotonic()) {
      const Event event = events_.top();
      events_.pop();
      event.run();
      return;
    }
    Actions actions;
    core_->Tick(now(), actions);
    CarryOut(actions);
    // A tick that is due again at once would never let time pass.
    ASSERT_GT(core_->NextTick(), clock_.Monotonic());
  }

  void Register(Node& node) {
    Actions actions;
    const auto registered =
        core_->RegisterStage(node.stage->Registration(), now(), actions);
    ASSERT_TRUE(registered.ok()) << registered.status();
    CarryOut(actions);
    Connect(node);
    Beat(node);
  }

  void Connect(Node& node) {
    if (node.dead || node.session != 0) return;
    const SessionId session = ++last_session_;
    node.session = session;
    sessions_[session] = &node;
    node.to_stage = node.to_core = clock_.Monotonic();
    Actions actions;
    const absl::Status opened =
        core_->OpenSession(session, node.stage->Hello(), now(), actions);
    ASSERT_TRUE(opened.ok()) << opened;
    CarryOut(actions);
  }

  void Beat(Node& node) {
    if (node.dead) return;
    v1::StageMessage beat;
    beat.mutable_heartbeat()->set_progress(node.stage->applied());
    if (node.session != 0) ToCore(node, beat);
    After(absl::Seconds(1), [this, &node] { Beat(node); });
  }

  void Break(Node& node, bool redials) {
    if (node.session == 0) return;
    const SessionId session = node.session;
    sessions_.erase(session);
    node.session = 0;
    node.stage->outbox().clear();
    After(Uniform(absl::Milliseconds(20)), [this, session] {
      Actions actions;
      core_->BreakSession(session, now(), actions);
      CarryOut(actions);
    });
    if (redials) {
      // After the core was told.
      After(absl::Milliseconds(20) +
                Uniform(kLongestRedial - absl::Milliseconds(20)),
            [this, &node] { Connect(node); });
    }
  }

  void Kill() {
    Node& node = *nodes_[victim_];
    if (Ended()) return;
    node.dead = true;
    dead_ = node.stage->name();
    Break(node, /*redials=*/false);
    // Its neighbours notice; so may its parent, sooner or later.
    for (const int i : {victim_ - 1, victim_ + 1}) {
      if (i < 0 || i >= static_cast<int>(nodes_.size())) continue;
      After(Uniform(absl::Milliseconds(30)), [this, i] {
        Node& neighbour = *nodes_[i];
        if (!neighbour.stage->assigned()) return;
        neighbour.stage->BreakEdge(std::min(i, victim_), std::max(i, victim_));
        Flush(neighbour);
      });
    }
    if (Chance(0.5)) {
      After(Uniform(absl::Milliseconds(400)), [this, &node] {
        v1::ReportStageExitRequest request;
        request.set_stage_name(node.stage->name());
        request.set_pid(node.stage->Registration().pid());
        request.set_exit_code(137);
        Actions actions;
        core_->ReportStageExit(request, now(), actions).IgnoreError();
        CarryOut(actions);
      });
    }
  }

  void ToCore(Node& node, const v1::StageMessage& message) {
    const SessionId session = node.session;
    node.to_core = std::max(
        node.to_core, clock_.Monotonic() + Uniform(absl::Milliseconds(20)));
    const int copies = Chance(faults_.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      After(node.to_core - clock_.Monotonic(), [this, session, message] {
        if (sessions_.count(session) == 0) return;  // Lost with it.
        Actions actions;
        const absl::Status status =
            core_->Receive(session, message, now(), actions);
        EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
        CarryOut(actions);
      });
    }
    if (Chance(faults_.broken_session)) Break(node, /*redials=*/true);
  }

  void Flush(Node& node) {
    std::deque<v1::StageMessage>& outbox = node.stage->outbox();
    while (!outbox.empty()) {
      const v1::StageMessage message = outbox.front();
      outbox.pop_front();
      if (node.session != 0) ToCore(node, message);
    }
  }

  void CarryOut(Actions& actions) {
    for (Action& action : actions) {
      if (auto* send = std::get_if<SendToStage>(&action)) {
        const auto it = sessions_.find(send->session);
        if (it == sessions_.end()) continue;
        if (send->message.has_release()) {
          CheckRelease(send->message.release().step());
        }
        Node& node = *it->second;
        node.to_stage =
            std::max(node.to_stage,
                     clock_.Monotonic() + Uniform(absl::Milliseconds(20)));
        After(node.to_stage - clock_.Monotonic(),
              [this, session = send->session, message = send->message] {
                const auto found = sessions_.find(session);
                if (found == sessions_.end()) return;
                found->second->stage->Take(message);
                Flush(*found->second);
              });
      } else if (auto* close = std::get_if<CloseSession>(&action)) {
        const auto it = sessions_.find(close->session);
        if (it == sessions_.end()) continue;
        it->second->session = 0;
        sessions_.erase(it);
      } else if (auto* change = std::get_if<ChangeJobFolder>(&action)) {
        if (change->change == ChangeJobFolder::Change::kRemove) continue;
        After(Uniform(absl::Milliseconds(20)),
              [this, done = FolderChanged{.job_id = change->job_id,
                                          .change = change->change}] {
                Actions more;
                core_->FolderChanged(done, now(), more);
                CarryOut(more);
              });
      } else if (auto* plan = std::get_if<MakePlan>(&action)) {
        After(Uniform(absl::Seconds(3)), [this, made = MakePlanOf(*plan)] {
          Actions more;
          core_->PlanMade(made, now(), more);
          CarryOut(more);
        });
      } else if (auto* write = std::get_if<WriteJobFile>(&action)) {
        if (write->name == "metrics.jsonl") ++lines_;
      }
    }
    actions.clear();
  }

  void CheckRelease(int64_t step) const {
    for (const auto& node : nodes_) {
      if (node->stage->assigned()) {
        EXPECT_GE(node->stage->reported(), step) << node->stage->name();
      }
    }
  }

  std::mt19937_64 random_;
  const Faults faults_;
  tests::fakes::FakeClock clock_;
  jobs::InMemoryJobStore store_;
  std::unique_ptr<Core> core_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<SessionId, Node*> sessions_;
  SessionId last_session_ = 0;
  std::priority_queue<Event> events_;
  int64_t order_ = 0;
  std::string id_;
  int victim_ = 0;
  std::string dead_;
  int lines_ = 0;
};

NewJob RandomJob(std::mt19937_64& random, int stages) {
  NewJob job = TinyJob(stages, 1 + static_cast<int>(random() % 6),
                       1 + static_cast<int64_t>(random() % 12));
  if (random() % 2 == 0) {
    job.spec.data.validation = {{.share_millionths = 100000}};
    job.spec.evaluate = {
        {.every = 1 + static_cast<int64_t>(random() % 4), .batches = 2}};
  }
  return job;
}

TEST(SimulationTest, RandomDelaysDuplicatesAndBrokenSessions) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int stages = 1 + static_cast<int>(random() % 5);
    World world(random(), stages, {.broken_session = 0.03, .duplicate = 0.1});
    const NewJob job = RandomJob(random, stages);
    world.Submit(job);
    world.RunFor(absl::Minutes(5));
    ASSERT_EQ(world.job().state(), Job::STATE_SUCCEEDED)
        << world.job().DebugString();
    EXPECT_EQ(world.lines(), *job.spec.steps);
    world.CheckAllFree();
    if (HasFailure()) break;
  }
}

TEST(SimulationTest, OneStageDiesSomeTime) {
  int lost = 0;
  for (uint64_t seed = 1001; seed <= 1200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int stages = 1 + static_cast<int>(random() % 5);
    World world(random(), stages,
                {.broken_session = 0.01, .duplicate = 0.1, .death = true});
    NewJob job = RandomJob(random, stages);
    job.spec.steps = 10 + static_cast<int64_t>(random() % 40);
    world.Submit(job);
    world.RunFor(absl::Minutes(5));
    ASSERT_TRUE(world.Ended()) << world.job().DebugString();
    EXPECT_EQ(world.lines(), world.job().step());
    if (world.job().state() == Job::STATE_FAILED) {
      ++lost;
      EXPECT_EQ(world.job().reason(), Job::STATE_REASON_STAGE_LOST)
          << world.job().DebugString();
      EXPECT_EQ(world.job().cause().stage_name(), world.dead());
    } else {
      EXPECT_EQ(world.job().state(), Job::STATE_SUCCEEDED);
      EXPECT_EQ(world.job().step(), *job.spec.steps);
    }
    world.CheckAllFree();
    if (HasFailure()) break;
  }
  EXPECT_GT(lost, 100);  // Deaths do come in time.
}

}  // namespace
}  // namespace penstock::coordinator::dispatch
