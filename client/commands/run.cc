// `penstock run`: a job on a cluster of child processes, from file to report.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/commands/command.h"
#include "client/commands/flag_checks.h"
#include "client/commands/output_format.h"
#include "client/commands/run_request.h"
#include "client/commands/run_results.h"
#include "client/exit_code.h"
#include "client/job_watch.h"
#include "client/json_output.h"
#include "client/local_cluster.h"
#include "client/occurrence_lines.h"
#include "client/patient_output.h"
#include "client/pending_call.h"
#include "client/progress.h"
#include "client/run_directory.h"
#include "client/run_end.h"
#include "common/process/signals.h"
#include "common/status/status_macros.h"
#include "common/time/clock.h"

namespace penstock::client::commands {
namespace {

// Where nothing wakes main.
constexpr absl::Duration kLookAround = absl::Seconds(1);
// After a stop signal all is over within five seconds: for the coordinator's
// answer, for the job's end, and for the end of the processes.
constexpr absl::Duration kCancelAnswerLimit = absl::Seconds(1);
constexpr absl::Duration kCancelLimit = absl::Seconds(2);
// One wish to stop can be two signals: timeout(1) sends SIGTERM to its child
// and then to the group; where a terminal closes, shell and kernel send SIGHUP.
constexpr absl::Duration kSameStop = absl::Milliseconds(500);
constexpr absl::Duration kStopLimit = absl::Milliseconds(1500);
constexpr absl::Duration kAbandonLimit = absl::Milliseconds(200);
constexpr absl::Duration kReapLimit = absl::Seconds(1);
// For a coordinator that ends, which has three seconds in all.
constexpr absl::Duration kCoordinatorEndLimit = absl::Milliseconds(2500);

Progress::Style StyleOf(const RunFlags& flags, const Environment& environment) {
  if (flags.progress == "none") return Progress::Style::kNone;
  if (flags.progress == "plain") return Progress::Style::kPlain;
  return environment.stderr_is_terminal ? Progress::Style::kTerminal
                                        : Progress::Style::kPlain;
}

// SIGCHLD wakes main: it is what main waits for anyway.
void WakeMain() { kill(getpid(), SIGCHLD); }

// One run, from the parsed flags to the exit code. Confined to main's thread.
class Run {
 public:
  Run(const RunFlags& flags, const Environment& environment)
      : flags_(flags),
        environment_(environment),
        clock_(environment.clock),
        progress_(
            StyleOf(flags, environment), clock_,
            [this](absl::string_view text) { output_->Write(text); },
            environment.stderr_columns),
        occurrences_(progress_) {}

  int Main() {
    // From here on what was started is ended in order. No thread is there yet.
    common::process::BlockSignals();
    output_.emplace(STDERR_FILENO);
    absl::Status started = Prepare();
    if (started.ok()) started = StartJob();
    if (!started.ok()) return NotStarted(started);
    Attend();
    return Finish();
  }

 private:
  // Everything that is refused before a process or a folder is made for it.
  absl::Status Prepare() {
    ASSIGN_OR_RETURN(request_, MakeRunRequest(flags_, environment_));
    auto cluster = EmbeddedCoordinator(environment_);
    if (absl::IsCancelled(cluster.status())) {
      // What ended that wait is there still.
      while (stop_signal_ == 0 && common::process::StopIsPending()) HearStop();
    }
    ASSIGN_OR_RETURN(cluster_, std::move(cluster));
    request_.set_validate_only(true);
    RETURN_IF_ERROR(CreateJob());
    return stop_signal_ == 0 ? absl::OkStatus()
                             : absl::CancelledError("told to stop");
  }

  // job_, or with failure_ where it is the coordinator that ended. After a
  // signal to stop an answer is waited for only while there may be a job with
  // results, and not longer than for the end of that job.
  absl::Status CreateJob() {
    absl::StatusOr<v1::Job> created;
    {
      CoordinatorClient& client = cluster_->client();
      const PendingCall call(
          [&created, &client, this] { created = client.CreateJob(request_); },
          WakeMain);
      while (!call.done()) {
        HearStop();
        if (StopIsOverdue() || (stop_signal_ != 0 && !directory_.has_value())) {
          client.CancelCalls();
        }
      }
    }
    if (absl::IsUnavailable(created.status()) && stop_signal_ == 0) {
      AwaitCoordinatorEnd();
    }
    if (created.ok()) job_ = *created;
    return created.status();
  }

  // Nothing stays. Returns the exit code.
  int NotStarted(const absl::Status& why) {
    // The processes before the folder: they write there.
    StopCluster();
    if (directory_.has_value()) directory_->Remove();
    output_.reset();
    if (stop_signal_ != 0) {
      std::fprintf(stderr, "penstock: %s\n",
                   DescribeEarlyStop(stop_signal_).c_str());
      return ExitCodeOf(RunEnd{.stop_signal = stop_signal_});
    }
    if (failure_.ok()) return Fail(why);
    Fail(failure_);
    return kJobFailed;
  }

  absl::Status StartJob() {
    for (const std::string& note : job_.notes()) {
      progress_.Message(absl::StrCat("note: ", Printable(note)));
    }
    if (flags_.run_directory.empty()) {
      ASSIGN_OR_RETURN(directory_, RunDirectory::CreateDefault(
                                       environment_.working_directory,
                                       job_.name(), clock_.Now()));
      if (!directory_->note().empty()) {
        progress_.Message(absl::StrCat("note: ", directory_->note()));
      }
    } else {
      ASSIGN_OR_RETURN(directory_, RunDirectory::Create(flags_.run_directory));
    }
    RETURN_IF_ERROR(cluster_->StartStages(
        {.count = job_.stages(),
         .device = job_.device(),
         // The machine's cores, shared out.
         .threads = std::max(1, environment_.cores / job_.stages()),
         .log_directory = directory_->logs()}));
    request_.set_validate_only(false);
    request_.set_run_directory(directory_->path());
    RETURN_IF_ERROR(CreateJob());
    progress_.OnJob(job_);
    watch_.emplace(cluster_->client(), job_.id(), WakeMain);
    return absl::OkStatus();
  }

  // Until the job has ended, a signal ended the wait, or the coordinator died.
  void Attend() {
    if (stop_signal_ != 0) CancelJob();  // It came before there was a job.
    while (true) {
      if (HearStop()) CancelJob();
      if (abandoned_ || CoordinatorEnded()) return;
      for (const v1::JobEvent& event : watch_->Take()) OnEvent(event);
      if (const auto end = watch_->ended(); end.has_value()) {
        if (!end->ok()) {
          OnBrokenWatch(*end);
          return;
        }
        if (IsOver(job_)) {
          AwaitEndOfLostStage();
          // Only the coordinator cancels what nobody here did: when it ends.
          if (job_.state() == v1::Job::STATE_CANCELLED && stop_signal_ == 0) {
            AwaitCoordinatorEnd();
          }
          return;
        }
      }
      if (StopIsOverdue()) return;
    }
  }

  // Waits for a signal or for something to look at. True: it was the first
  // that tells to stop.
  bool HearStop() {
    const auto signal = common::process::WaitForSignal(
        stop_signal_ == 0
            ? kLookAround
            // A moment where it is overdue: for what was given up to return.
            : std::clamp(stop_deadline_ - clock_.Monotonic(),
                         absl::Milliseconds(10), kLookAround));
    if (!signal.has_value() || !common::process::TellsToStop(*signal)) {
      return false;
    }
    const auto now = clock_.Monotonic();
    if (stop_signal_ != 0) {
      if (now >= second_from_) abandoned_ = true;  // The second one: now.
      return false;
    }
    stop_signal_ = *signal;
    stop_deadline_ = now + kCancelLimit;
    second_from_ = now + kSameStop;
    progress_.Message("stopping (again: at once)");
    return true;
  }

  // Whether what a signal told to stop must not be waited for any longer.
  bool StopIsOverdue() const {
    return abandoned_ ||
           (stop_signal_ != 0 && clock_.Monotonic() >= stop_deadline_);
  }

  void CancelJob() {
    cluster_->client()
        .CancelJob(job_.id(), kCancelAnswerLimit)
        .status()
        .IgnoreError();
  }

  // Reaps, and says what ended. True, with failure_, for the coordinator.
  bool CoordinatorEnded() {
    bool coordinator_ended = false;
    for (const LocalCluster::Ended& ended : cluster_->Reap()) {
      const std::string text = absl::StrCat(
          ended.name, " ended: ", Describe(ended.exit),
          // A daemon has no other reason for it.
          ended.exit.exit_code == 0 ? " (stopped by a signal)" : "",
          ended.trouble.empty() ? "" : ": ", ended.trouble);
      if (ended.name == "coordinator") {
        failure_ = absl::UnavailableError(absl::StrCat("the ", text));
        coordinator_ended = true;
      } else {
        progress_.Message(Printable(text));
        ended_stages_.insert(ended.name);
      }
    }
    return coordinator_ended;
  }

  // The job's end can be here before the process whose end was its cause can be
  // reaped, and how that ended is what a user wants to know.
  void AwaitEndOfLostStage() {
    if (job_.reason() != v1::Job::STATE_REASON_STAGE_LOST) return;
    const auto deadline = clock_.Monotonic() + kReapLimit;
    while (!ended_stages_.contains(job_.cause().stage_name()) &&
           AwaitChildEnd(deadline - clock_.Monotonic()) &&
           !CoordinatorEnded()) {
    }
  }

  // A broken watch is the first sign of a coordinator that died: the kernel
  // closes its socket before it can be reaped.
  void OnBrokenWatch(const absl::Status& status) {
    AwaitCoordinatorEnd();
    if (!failure_.ok()) return;
    failure_ = absl::UnavailableError(
        absl::StrCat("lost the coordinator, whose process lives (is it "
                     "stopped?): ",
                     status.message()));
  }

  // Of one that ends or has ended: sets failure_. Nothing is asked of the
  // coordinator from now on; it ends when our connection has closed.
  void AwaitCoordinatorEnd() {
    watch_.reset();
    cluster_->Disconnect();
    const auto deadline = clock_.Monotonic() + kCoordinatorEndLimit;
    do {
      if (CoordinatorEnded()) return;
    } while (AwaitChildEnd(deadline - clock_.Monotonic()));
  }

  void OnEvent(const v1::JobEvent& event) {
    if (event.has_job()) {
      job_ = event.job();
      progress_.OnJob(job_);
    } else if (event.has_metrics()) {
      progress_.OnMetrics(event.metrics());
    } else if (event.has_occurrence()) {
      occurrences_.Add(event.occurrence(), job_);
    }
  }

  // What is left to do may hang, at a disk or because nobody takes what is
  // shown, and hears no signal then: there is nothing left to be ended by us.
  // So what is shown comes last, the rest of output_ included.
  void StopCluster() {
    if (cluster_ != nullptr) {
      cluster_->Stop(abandoned_ ? kAbandonLimit : kStopLimit);
    }
    common::process::LetStopSignalsEnd();
  }

  int Finish() {
    occurrences_.End(job_);
    progress_.Finish();
    watch_.reset();
    StopCluster();
    // A coordinator that saw the job's end has done so, or left what is whole.
    if (!IsOver(job_)) directory_->RemoveUnfinished();
    const RunEnd end{
        .stop_signal = stop_signal_, .coordinator = failure_, .job = job_};
    RunResults results(*directory_, flags_.format == "json"
                                        ? RunResults::Format::kJson
                                        : RunResults::Format::kTable);
    if (IsRefused(end)) {
      directory_->Remove();  // Nothing of it stays.
    } else {
      results.Complete(*cluster_);
    }
    output_.reset();
    if (const std::string text = Describe(end, *directory_); !text.empty()) {
      std::fprintf(stderr, "penstock: %s\n", text.c_str());
    }
    if (!IsRefused(end)) results.Print(job_);
    return ExitCodeOf(end);
  }

  const RunFlags& flags_;
  const Environment& environment_;
  const common::time::Clock& clock_;
  // For main's words while it has to hear signals.
  std::optional<PatientOutput> output_;
  Progress progress_;
  OccurrenceLines occurrences_;
  v1::CreateJobRequest request_;
  v1::Job job_;
  std::unique_ptr<LocalCluster> cluster_;
  std::optional<RunDirectory> directory_;
  std::optional<JobWatch> watch_;
  std::set<std::string> ended_stages_;  // By themselves.
  absl::Status failure_;                // How the coordinator ended.
  int stop_signal_ = 0;
  common::time::MonotonicTime stop_deadline_;
  common::time::MonotonicTime second_from_;  // Until then it is the first.
  bool abandoned_ = false;
};

}  // namespace

void AddRun(CLI::App& app, const Environment& environment, Chosen& chosen) {
  auto* command = app.add_subcommand(
      "run", "Train a job file on local stages, started for it");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("job", flags->job_file, "Job file (YAML)")->required();
  command
      ->add_option("--stages", flags->stages,
                   "Ranks; the same as --set pipeline.stages=K")
      ->check(AtLeast(1));
  command
      ->add_option("--run-dir", flags->run_directory,
                   "Where results go: absent or empty "
                   "(default runs/NAME-YYYYmmdd-HHMMSS)")
      ->check(NotEmpty());
  command
      ->add_option("--set", flags->overrides,
                   "KEY=VALUE over the job file, repeatable")
      ->allow_extra_args(false);  // Or it would take the job file's name too.
  AddOutputFlag(*command, flags->format, {"table", "json"});
  command->add_option("--progress", flags->progress, "auto, plain or none")
      ->check(CLI::IsMember({"auto", "plain", "none"}))
      ->capture_default_str();
  command->callback([flags, &environment, &chosen] {
    chosen = [flags, &environment] { return Run(*flags, environment).Main(); };
  });
}

}  // namespace penstock::client::commands
