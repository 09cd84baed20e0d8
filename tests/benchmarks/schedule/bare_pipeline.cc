// The bare program: a job's schedule between real processes with the same waits
// as the daemons' and no service around it. What it reaches is what a machine's
// timers, wake-ups and sockets allow; tests/benchmarks/schedule/schedules.py
// runs it beside the real thing.
//
//   bare_pipeline 1f1b --ranks=8 --micro-batches=24 --forward=5ms
//       --backward-input=5ms --backward-weight=5ms --steps=5
//
// Instead of a name file:PATH takes an order as CSV (with --chunks). Prints
// JSON: what is simulated, and for each step its time (from release to release;
// with --no-barrier from end to end), the largest span bubble of its ranks, and
// what the barrier took (from the last op's end until all ranks were released).
// The ranks are this program again, with --rank.
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "tests/benchmarks/schedule/bare_rank.h"
#include "tests/benchmarks/schedule/loopback.h"
#include "tests/benchmarks/schedule/rank_plan.h"

extern char** environ;

namespace penstock::benchmarks::schedule {
namespace {

struct Arguments {
  PlanOptions plan;
  // rank kNone: the parent.
  RankOptions rank{.rank = kNone, .steps = 5, .payload_bytes = 512};
};

bool ParseSeconds(absl::string_view text, double* seconds) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return false;
  *seconds = absl::ToDoubleSeconds(duration);
  return *seconds >= 0;
}

bool Parse(absl::string_view argument, Arguments& to) {
  if (!absl::StartsWith(argument, "--")) {
    to.plan.schedule = std::string(argument);
    return true;
  }
  if (argument == "--no-barrier") {
    to.rank.barrier = false;
    return true;
  }
  const std::pair<absl::string_view, absl::string_view> flag =
      absl::StrSplit(argument.substr(2), absl::MaxSplits('=', 1));
  const auto& [name, value] = flag;
  coordinator::schedule::RankTimes& times = to.plan.times;
  const auto whole = [&value = value](int* number) {
    return absl::SimpleAtoi(value, number);
  };
  if (name == "ranks") return whole(&to.plan.shape.ranks);
  if (name == "chunks") return whole(&to.plan.shape.chunks);
  if (name == "micro-batches") return whole(&to.plan.shape.micro_batches);
  if (name == "forward") return ParseSeconds(value, &times.forward);
  if (name == "backward-input") {
    return ParseSeconds(value, &times.backward_input);
  }
  if (name == "backward-weight") {
    return ParseSeconds(value, &times.backward_weight);
  }
  if (name == "transfer") return ParseSeconds(value, &times.transfer);
  if (name == "steps") return whole(&to.rank.steps) && to.rank.steps > 0;
  if (name == "payload") {
    return whole(&to.rank.payload_bytes) && to.rank.payload_bytes > 0;
  }
  if (name == "rank") return whole(&to.rank.rank);
  if (name == "control") return whole(&to.rank.control_port);
  return false;
}

// The parent's side: one connection a rank.
class Ranks {
 public:
  Ranks(const std::vector<std::string>& arguments, int count)
      : controls_(count), steps_(count) {
    const Listener listener = Listen();
    for (int rank = 0; rank < count; ++rank) {
      Spawn(arguments, rank, listener.port);
    }
    std::vector<int> data_ports(count);
    for (int i = 0; i < count; ++i) {
      const int fd = Accept(listener.fd);
      const int rank = Get<int>(fd);
      controls_[rank] = fd;
      data_ports[rank] = Get<int>(fd);
    }
    for (int fd : controls_) {
      for (int port : data_ports) Put(fd, port);
    }
    AwaitWord();  // Ready.
  }

  void Release() {
    for (int fd : controls_) Put(fd, char{1});
  }

  // The next step, when all have done it.
  const std::vector<RankStep>& Await() {
    for (size_t i = 0; i < controls_.size(); ++i) {
      steps_[i] = Get<RankStep>(controls_[i]);
    }
    return steps_;
  }

  // After the last step.
  void End() {
    AwaitWord();
    Release();
    for (pid_t pid : children_) {
      int status = 0;
      waitpid(pid, &status, 0);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a rank failed";
    }
  }

 private:
  void AwaitWord() {
    for (int fd : controls_) Get<int>(fd);
  }

  void Spawn(std::vector<std::string> arguments, int rank, int port) {
    arguments.push_back(absl::StrCat("--rank=", rank));
    arguments.push_back(absl::StrCat("--control=", port));
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, pointers.data(),
                      environ) == 0);
    children_.push_back(pid);
  }

  std::vector<int> controls_;  // By rank.
  std::vector<RankStep> steps_;
  std::vector<pid_t> children_;
};

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// The rank with the most idle time between its first op and its last: that, as
// a share of the time between.
double SpanBubble(const std::vector<RankStep>& steps) {
  double largest = -1, share = 0;
  for (const RankStep& step : steps) {
    const double span = Seconds(step.last_end - step.first_start);
    const double idle = span - Seconds(step.busy);
    if (idle > largest) {
      largest = idle;
      share = span > 0 ? idle / span : 0;
    }
  }
  return share;
}

nlohmann::ordered_json Simulated(const PipelinePlan& plan) {
  double longest = 0;
  for (const auto& rank : plan.simulated.ranks) {
    longest = std::max(longest, rank.last_end - rank.first_start);
  }
  return {{"makespan", plan.simulated.makespan},
          {"longest_span", longest},
          {"bubble_rate", plan.simulated.bubble_rate},
          {"span_bubble_rate", plan.simulated.span_bubble_rate}};
}

// Runs all steps, with the ranks' processes, and prints what came of it.
void RunPipeline(const std::vector<std::string>& command,
                 const Arguments& arguments, const PipelinePlan& plan) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  Ranks ranks(command, plan.ranks);
  int64_t begin = NowNs();
  ranks.Release();
  for (int step = 0; step < arguments.rank.steps; ++step) {
    const std::vector<RankStep> done = ranks.Await();
    const int64_t end = NowNs();
    const bool last = step + 1 == arguments.rank.steps;
    if (arguments.rank.barrier || last) ranks.Release();
    const int64_t released = NowNs();
    // Whoever waits for all that it must cannot be faster.
    CHECK(!arguments.rank.barrier ||
          Seconds(end - begin) >= (1 - 1e-9) * plan.simulated.makespan)
        << "a step took " << Seconds(end - begin) << " s, less than simulated";
    int64_t last_end = 0, late = 0, ops = 0;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      last_end = std::max(last_end, done[rank].last_end);
      late += done[rank].late;
      ops += std::ssize(plan.rank_plans[rank].ops);
    }
    steps.push_back({{"seconds", Seconds(end - begin)},
                     {"span_bubble_rate", SpanBubble(done)},
                     {"barrier", Seconds(released - last_end)},
                     {"mean_late", Seconds(late) / static_cast<double>(ops)}});
    begin = end;
  }
  ranks.End();
  const nlohmann::ordered_json result = {{"schedule", plan.schedule},
                                         {"ranks", plan.ranks},
                                         {"micro_batches", plan.micro_batches},
                                         {"simulated", Simulated(plan)},
                                         {"steps", steps}};
  std::printf("%s\n", result.dump().c_str());
}

int Main(const std::vector<std::string>& command) {
  Arguments arguments;
  for (size_t i = 1; i < command.size(); ++i) {
    if (Parse(command[i], arguments)) continue;
    std::fprintf(stderr, "bare_pipeline: %s: see the file's head\n",
                 command[i].c_str());
    return 2;
  }
  arguments.rank.transfer_ns =
      static_cast<int64_t>(1e9 * arguments.plan.times.transfer);
  const auto plan = MakePipelinePlan(arguments.plan);
  if (!plan.ok()) {
    std::fprintf(stderr, "bare_pipeline: %s\n",
                 std::string(plan.status().message()).c_str());
    return 2;
  }
  if (arguments.rank.rank == kNone) {
    RunPipeline(command, arguments, *plan);
    return 0;
  }
  CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  RunRank(plan->rank_plans.at(arguments.rank.rank), plan->ranks,
          arguments.rank);
  return 0;
}

}  // namespace
}  // namespace penstock::benchmarks::schedule

int main(int argc, char** argv) {
  return penstock::benchmarks::schedule::Main({argv, argv + argc});
}
