// `penstock run`: a job on a cluster of child processes, from file to report.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/arguments.h"
#include "client/commands/command.h"
#include "client/commands/flag_checks.h"
#include "client/commands/output_format.h"
#include "client/exit_code.h"
#include "client/input_file.h"
#include "client/job_watch.h"
#include "client/json_output.h"
#include "client/local_cluster.h"
#include "client/progress.h"
#include "client/report/report.h"
#include "client/report/run_files.h"
#include "client/report/run_summary.h"
#include "client/run_directory.h"
#include "client/summary_table.h"
#include "common/process/signals.h"
#include "common/status/status_macros.h"
#include "common/time/clock.h"

namespace penstock::client::commands {
namespace {

namespace fs = std::filesystem;

// After a stop signal all is over within five seconds: for the coordinator's
// answer, for the job's end, and for the end of the processes.
constexpr absl::Duration kCancelAnswerLimit = absl::Seconds(1);
constexpr absl::Duration kCancelLimit = absl::Seconds(2);
constexpr absl::Duration kStopLimit = absl::Milliseconds(1500);
constexpr absl::Duration kAbandonLimit = absl::Milliseconds(200);
constexpr absl::Duration kReapLimit = absl::Seconds(1);
// For a coordinator that ends, which has three seconds in all.
constexpr absl::Duration kCoordinatorEndLimit = absl::Milliseconds(2500);

struct Flags {
  std::string job_file;
  int stages = 0;
  std::string run_directory;
  std::vector<std::string> overrides;
  std::string format = "table";
  std::string progress = "auto";
};

Progress::Style StyleOf(const Flags& flags, const Environment& environment) {
  if (flags.progress == "none") return Progress::Style::kNone;
  if (flags.progress == "plain") return Progress::Style::kPlain;
  return environment.stderr_is_terminal ? Progress::Style::kTerminal
                                        : Progress::Style::kPlain;
}

void WriteStderr(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// One run, from the parsed flags to the exit code. Confined to main's thread.
class Run {
 public:
  Run(const Flags& flags, const Environment& environment)
      : flags_(flags),
        environment_(environment),
        clock_(environment.clock),
        progress_(StyleOf(flags, environment), clock_, WriteStderr,
                  environment.stderr_columns) {}

  int Main() {
    absl::Status started = Prepare();
    if (started.ok()) started = StartJob();
    if (!started.ok()) {
      if (directory_.has_value()) directory_->Remove();
      if (failure_.ok()) return Fail(started);
      Complain(failure_);
      return kJobFailed;
    }
    Attend();
    return Finish();
  }

 private:
  // Everything that is refused before a process or a folder is made for it.
  absl::Status Prepare() {
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadInputFile("job file", flags_.job_file));
    if (!flags_.run_directory.empty()) {
      RETURN_IF_ERROR(CheckFresh(flags_.run_directory));
    }
    request_.set_file(bytes);
    request_.set_file_name(flags_.job_file);
    for (const std::string& override : flags_.overrides) {
      request_.add_overrides(override);
    }
    if (flags_.stages != 0) {
      v1::FlagOverride& stages = *request_.add_flag_overrides();
      stages.set_flag("--stages");
      stages.set_setting(absl::StrCat("pipeline.stages=", flags_.stages));
    }
    RETURN_IF_ERROR(NameBaseDirectory());
    ASSIGN_OR_RETURN(cluster_, EmbeddedCoordinator(environment_));
    request_.set_validate_only(true);
    return CreateJob();
  }

  // job_, or with failure_ where it is the coordinator that ended.
  absl::Status CreateJob() {
    const auto created = cluster_->client().CreateJob(request_);
    if (absl::IsUnavailable(created.status())) AwaitCoordinatorEnd();
    if (created.ok()) job_ = *created;
    return created.status();
  }

  // The job file's, which its paths are relative to.
  absl::Status NameBaseDirectory() {
    const fs::path file = flags_.job_file;
    if (environment_.working_directory.empty() &&
        (file.is_relative() || fs::path(flags_.run_directory).is_relative())) {
      return absl::InvalidArgumentError(
          "the working directory does not exist any more; go to another, or "
          "give the job file and --run-dir as absolute paths");
    }
    const std::string base = (fs::path(environment_.working_directory) / file)
                                 .parent_path()
                                 .string();
    for (const std::string& path : {environment_.working_directory, base}) {
      RETURN_IF_ERROR(CheckUtf8("the working directory", path));
    }
    request_.set_base_directory(base);
    return absl::OkStatus();
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
    // SIGCHLD wakes main: it is what the wait is for anyway.
    watch_.emplace(cluster_->client(), job_.id(),
                   [] { kill(getpid(), SIGCHLD); });
    return absl::OkStatus();
  }

  // Until the job has ended, a signal ended the wait, or the coordinator died.
  void Attend() {
    while (true) {
      const auto signal = common::process::WaitForSignal(absl::Seconds(1));
      if (signal == SIGINT || signal == SIGTERM ||
          (signal == SIGHUP && !environment_.hangup_ignored)) {
        OnStopSignal(*signal);
        if (abandoned_) return;
      }
      if (CoordinatorEnded()) return;
      for (const v1::JobEvent& event : watch_->Take()) OnEvent(event);
      if (const auto end = watch_->ended(); end.has_value()) {
        if (!end->ok()) {
          OnBrokenWatch(*end);
          return;
        }
        if (IsOver()) {
          AwaitEndOfLostStage();
          // Only the coordinator cancels what nobody here did: when it ends.
          if (job_.state() == v1::Job::STATE_CANCELLED && stop_signal_ == 0) {
            AwaitCoordinatorEnd();
          }
          return;
        }
      }
      if (stop_signal_ != 0 && clock_.Monotonic() > stop_deadline_) return;
    }
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

  void OnStopSignal(int signal) {
    if (stop_signal_ != 0) {
      abandoned_ = true;  // The second one: now.
      return;
    }
    stop_signal_ = signal;
    stop_deadline_ = clock_.Monotonic() + kCancelLimit;
    progress_.Message("stopping (again: at once)");
    cluster_->client()
        .CancelJob(job_.id(), kCancelAnswerLimit)
        .status()
        .IgnoreError();
  }

  void OnEvent(const v1::JobEvent& event) {
    if (event.has_job()) {
      job_ = event.job();
      progress_.OnJob(job_);
    } else if (event.has_metrics()) {
      progress_.OnMetrics(event.metrics());
    } else if (event.has_occurrence() &&
               (event.occurrence().severity() !=
                    v1::Occurrence::SEVERITY_INFO ||
                event.occurrence().kind() == "WAITING_FOR_STAGES")) {
      const v1::Occurrence& what = event.occurrence();
      if (what.severity() == v1::Occurrence::SEVERITY_ERROR &&
          !what.consequence() && !job_.has_start_time()) {
        held_back_.push_back(what);
      } else {
        Say(what);
      }
    }
  }

  void Say(const v1::Occurrence& what) {
    progress_.Message(absl::StrCat(what.consequence() ? "  (consequence) " : "",
                                   what.kind(), ": ",
                                   Printable(what.message())));
  }

  bool IsOver() const {
    return job_.state() == v1::Job::STATE_SUCCEEDED ||
           job_.state() == v1::Job::STATE_FAILED ||
           job_.state() == v1::Job::STATE_CANCELLED;
  }

  int Finish() {
    for (const v1::Occurrence& what : held_back_) {
      if (!absl::StartsWith(job_.cause().message(), what.message())) Say(what);
    }
    progress_.Finish();
    watch_.reset();
    cluster_->Stop(abandoned_ ? kAbandonLimit : kStopLimit);
    // A coordinator that saw the job's end has done so, or left what is whole.
    if (!IsOver()) directory_->RemoveUnfinished();
    const int code = SayHowItEnded();
    if (IsRefused(code)) {
      // Nothing ran, and nothing of it stays.
      directory_->Remove();
      return code;
    }
    CompleteResults();
    PrintResults();
    return code;
  }

  // On stderr, unless it is success. Returns the exit code.
  int SayHowItEnded() {
    if (stop_signal_ != 0) {
      std::fprintf(stderr,
                   "penstock: stopped by %s; results so far are in %s\n",
                   stop_signal_ == SIGINT   ? "Ctrl-C"
                   : stop_signal_ == SIGHUP ? "SIGHUP (the terminal closed)"
                                            : "SIGTERM",
                   directory_->path().c_str());
      return stop_signal_ == SIGINT ? kInterrupted : kStopped;
    }
    if (!failure_.ok()) {
      std::fprintf(stderr, "penstock: %s; logs are in %s\n",
                   Printable(failure_.message()).c_str(),
                   directory_->logs().c_str());
      return kJobFailed;
    }
    if (job_.state() == v1::Job::STATE_FAILED) {
      std::fprintf(stderr, "penstock: job %s failed: %s: %s\n",
                   job_.id().c_str(),
                   ToJson(job_)["reason"].get<std::string>().c_str(),
                   Printable(job_.cause().message()).c_str());
    }
    return ExitCodeOf(job_);
  }

  // Before anything ran. (Of a failure, as a stage that died while it was
  // assembled, the logs are wanted.)
  bool IsRefused(int code) const {
    return job_.state() == v1::Job::STATE_FAILED && !job_.has_start_time() &&
           (code == kUsage || code == kVersionMismatch);
  }

  // The coordinator's log and the report join the results.
  void CompleteResults() {
    Complain(cluster_->SaveCoordinatorLog(
        (fs::path(directory_->logs()) / "coordinator.log").string()));
    const absl::Status reported = report::WriteReport(directory_->path());
    Complain(reported);
    has_report_ = reported.ok();
  }

  // summary.json, where the job came so far that there is one.
  void PrintResults() {
    const std::string path =
        (fs::path(directory_->path()) / "summary.json").string();
    const std::string text = SummaryText(path);
    if (text.empty()) {
      // The job came to none.
    } else if (flags_.format == "json") {
      std::fputs(text.c_str(), stdout);
    } else if (const auto summary = report::ParseRunSummary(text, path);
               summary.ok()) {
      std::printf("%s\n", SummaryTable(*summary).c_str());
    } else {
      Complain(summary.status());
    }
    if (flags_.format == "json" || !has_report_) return;
    std::printf("report: %s\n",
                (fs::path(directory_->path()) / "report.html").c_str());
  }

  // Of the file, or what was to be in it.
  std::string SummaryText(const std::string& path) {
    const auto text = report::FileContents(path);
    if (text.ok() && text->has_value()) return **text;
    if (!text.ok()) {
      Complain(text.status());
    } else if (!job_.summary_json().empty()) {
      Complain(absl::NotFoundError(absl::StrCat(
          path, " is not there; logs/coordinator.log may say why")));
    }
    return job_.summary_json();
  }

  // On stderr; the same only once.
  void Complain(const absl::Status& status) {
    if (status.ok() || !complaints_.emplace(status.message()).second) return;
    std::fprintf(stderr, "penstock: %s\n", Printable(status.message()).c_str());
  }

  const Flags& flags_;
  const Environment& environment_;
  const common::time::Clock& clock_;
  Progress progress_;
  v1::CreateJobRequest request_;
  v1::Job job_;
  std::unique_ptr<LocalCluster> cluster_;
  std::optional<RunDirectory> directory_;
  std::optional<JobWatch> watch_;
  std::set<std::string> ended_stages_;  // By themselves.
  // Errors before the start, said at the end unless they are the job's cause.
  std::vector<v1::Occurrence> held_back_;
  std::set<std::string> complaints_;
  absl::Status failure_;
  bool has_report_ = false;
  int stop_signal_ = 0;
  common::time::MonotonicTime stop_deadline_;
  bool abandoned_ = false;
};

}  // namespace

void AddRun(CLI::App& app, const Environment& environment, Chosen& chosen) {
  auto* command = app.add_subcommand(
      "run", "Train a job file on local stages, started for it");
  auto flags = std::make_shared<Flags>();
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
  command->add_option("--set", flags->overrides,
                      "KEY=VALUE over the job file, repeatable");
  AddOutputFlag(*command, flags->format, {"table", "json"});
  command->add_option("--progress", flags->progress, "auto, plain or none")
      ->check(CLI::IsMember({"auto", "plain", "none"}))
      ->capture_default_str();
  command->callback([flags, &environment, &chosen] {
    chosen = [flags, &environment] { return Run(*flags, environment).Main(); };
  });
}

}  // namespace penstock::client::commands
