#include "tests/integration/local_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/random.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "coordinator/dispatch/job_plan.h"
#include "coordinator/jobs/job_state.h"
#include "server/executor/measured_memory.h"
#include "server/executor/stage_assignment.h"
#include "server/model/init.h"
#include "tests/server/executor/pipeline.h"

namespace penstock::testing {

using coordinator::dispatch::Action;
using coordinator::dispatch::Actions;
using coordinator::dispatch::ChangeJobFolder;
using coordinator::dispatch::FolderChanged;
using coordinator::dispatch::MakePlan;
using coordinator::dispatch::NewJob;
using coordinator::dispatch::PlanMade;
using coordinator::dispatch::SendToStage;
using coordinator::dispatch::WriteJobFile;
using server::executor::Executor;
using server::model::ParameterStore;

namespace {

// Sequential passes over so many made-up training sequences.
class Passes final : public server::executor::MicroBatchSource {
 public:
  Passes(int64_t sequence_length, int64_t vocab, int64_t sequences)
      : data_(sequence_length, vocab), sequences_(sequences) {}
  // REQUIRES: a pass is a whole number of micro-batches.
  absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                    absl::Span<int32_t> labels) override {
    if (split == Split::kTraining) first %= sequences_;
    return data_.Read(split, first, ids, labels);
  }

 private:
  MadeUpData data_;
  const int64_t sequences_;
};

}  // namespace

void StageMailbox::Put(int rank, v1::StageMessage message) {
  common::sync::MutexLock lock(&mutex_);
  letters_.push_back({rank, std::move(message)});
}

std::unique_ptr<StageMailbox::Letter> StageMailbox::Take() {
  common::sync::MutexLock lock(&mutex_);
  const auto there = [this] {
    mutex_.AssertHeld();
    return !letters_.empty();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(60))) {
    return nullptr;
  }
  auto letter = std::make_unique<Letter>(std::move(letters_.front()));
  letters_.pop_front();
  return letter;
}

absl::StatusOr<std::vector<std::string>> UnwrittenModel::Write(
    const Request& request) {
  std::vector<std::string> names;
  for (const server::model::ParameterSpec& spec : request.parameters.owned()) {
    names.push_back(spec.name);
  }
  return names;
}

LocalStage::LocalStage(Deps deps)
    : deps_(std::move(deps)), name_(absl::StrCat("stage-", deps_.index)) {}

LocalStage::~LocalStage() { executor_.reset(); }

v1::RegisterStageRequest LocalStage::Registration() const {
  v1::RegisterStageRequest request;
  request.set_stage_name(name_);
  request.set_incarnation(
      absl::StrCat("00000000-0000-4000-8000-00000000000", deps_.index));
  request.mutable_device()->set_kind("cpu");
  request.mutable_device()->set_threads(deps_.threads);
  request.add_numerics_ids(deps_.device->numerics_id());
  request.mutable_protocol()->set_lowest(1);
  request.mutable_protocol()->set_highest(1);
  request.set_host("here");
  request.set_data_address("127.0.0.1:1");  // Nobody connects.
  return request;
}

void LocalStage::Check(const v1::CheckInputs& check) {
  v1::StageMessage message;
  v1::InputsChecked& checked = *message.mutable_inputs_checked();
  if (check.has_data()) {
    v1::InputReport& train = *checked.mutable_train();
    train.set_fingerprint("made up");
    train.set_sequences(deps_.sequences);
    train.set_sequence_length(check.data().sequence_length());
    train.set_largest_id(check.model().vocab() - 1);
    v1::InputReport& validation = *checked.mutable_validation();
    validation = train;
    validation.set_sequences(deps_.validation_sequences);
  }
  deps_.mailbox->Put(deps_.index, std::move(message));
}

absl::Status LocalStage::Assemble(const v1::Assignment& assignment,
                                  int64_t epoch) {
  ASSIGN_OR_RETURN(const server::executor::StageAssignment decoded,
                   server::executor::DecodeAssignment(assignment));
  source_ = std::make_unique<Passes>(decoded.shape.seq, decoded.model.vocab,
                                     deps_.sequences);
  ASSIGN_OR_RETURN(parameters_,
                   ParameterStore::Create(*deps_.device, decoded.parameters()));
  ASSIGN_OR_RETURN(const auto stream, deps_.device->CreateStream());
  const auto initial = [&](const server::model::ParameterSpec& spec,
                           absl::Span<float> values) {
    server::model::Initialise(decoded.seed, spec, values);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      parameters_->Load(*stream, initial, 0, absl::InfiniteFuture()));
  ASSIGN_OR_RETURN(
      auto transport,
      deps_.hub->Join(name_,
                      decoded.transport(epoch, assignment.epoch_secret())));
  ASSIGN_OR_RETURN(
      executor_,
      Executor::Create(decoded, {.epoch = epoch, .stage_name = name_},
                       {.device = deps_.device.get(),
                        .parameters = parameters_.get(),
                        .transport = std::move(transport),
                        .source = source_.get(),
                        .writer = &writer_,
                        .clock = deps_.clock,
                        .listener = this}));
  v1::StageMessage message;
  v1::StageReady& ready = *message.mutable_ready();
  for (const server::model::ParameterSpec& spec : parameters_->owned()) {
    v1::ParameterInfo& parameter = *ready.add_parameters();
    parameter.set_name(spec.name);
    parameter.set_canonical_index(spec.index);
    parameter.set_elements(spec.shape.elements());
    parameter.set_owned(true);
  }
  *ready.mutable_memory() =
      server::executor::PeakMemory(deps_.device->memory());
  deps_.mailbox->Put(deps_.index, std::move(message));
  return absl::OkStatus();
}

absl::Status LocalStage::Take(const v1::CoordinatorMessage& message) {
  switch (message.body_case()) {
    case v1::CoordinatorMessage::kCheckInputs:
      Check(message.check_inputs());
      return absl::OkStatus();
    case v1::CoordinatorMessage::kProbeOutput: {
      v1::StageMessage probed;
      probed.mutable_output_probed();
      deps_.mailbox->Put(deps_.index, std::move(probed));
      return absl::OkStatus();
    }
    case v1::CoordinatorMessage::kAssignment:
      return Assemble(message.assignment(), message.epoch());
    case v1::CoordinatorMessage::kCommands:
      return executor_->Enqueue(message.commands(), deps_.clock->Monotonic());
    case v1::CoordinatorMessage::kRelease:
      return executor_->Enqueue(message.release(), deps_.clock->Monotonic());
    case v1::CoordinatorMessage::kEnd:
      return executor_->Enqueue(message.end(), deps_.clock->Monotonic());
    case v1::CoordinatorMessage::kAbort: {
      if (executor_ != nullptr) {
        executor_->Abort(absl::AbortedError(message.abort().cause().message()));
      }
      executor_.reset();
      v1::StageMessage aborted;
      aborted.mutable_aborted()->set_epoch(message.abort().epoch());
      deps_.mailbox->Put(deps_.index, std::move(aborted));
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();
  }
}

void LocalStage::OnStepReport(const v1::StepReport& report) {
  v1::StageMessage message;
  *message.mutable_step_report() = report;
  deps_.mailbox->Put(deps_.index, std::move(message));
}
void LocalStage::OnApplyAck(const v1::ApplyAck& ack) {
  v1::StageMessage message;
  *message.mutable_apply_ack() = ack;
  deps_.mailbox->Put(deps_.index, std::move(message));
}
void LocalStage::OnEvalReport(const v1::EvalReport& report) {
  v1::StageMessage message;
  *message.mutable_eval_report() = report;
  deps_.mailbox->Put(deps_.index, std::move(message));
}
void LocalStage::OnEndReport(const v1::EndReport& report) {
  v1::StageMessage message;
  *message.mutable_end_report() = report;
  deps_.mailbox->Put(deps_.index, std::move(message));
}
void LocalStage::OnFailure(const v1::StageFailure& failure) {
  v1::StageMessage message;
  *message.mutable_failure() = failure;
  deps_.mailbox->Put(deps_.index, std::move(message));
}

LocalCluster::LocalCluster(int stages, const Options& options)
    : core_(
          {.random = common::ids::SystemRandom(), .state_directory = "/state"},
          store_),
      hub_({.max_delay = options.max_delay, .seed = options.seed}) {
  for (int i = 0; i < stages; ++i) {
    if (options.stage) {
      stages_.push_back(options.stage(i, hub_, mailbox_));
    } else {
      stages_.push_back(std::make_unique<LocalStage>(LocalStage::Deps{
          .index = i,
          .device = options.device(),
          .threads = options.threads,
          .hub = &hub_,
          .mailbox = &mailbox_,
          .clock = &clock_,
          .sequences = options.sequences,
          .validation_sequences = options.validation_sequences}));
    }
    const v1::RegisterStageRequest registration = stages_[i]->Registration();
    v1::Hello hello;
    hello.set_stage_name(registration.stage_name());
    hello.set_incarnation(registration.incarnation());
    Actions actions;
    CHECK_OK(core_.RegisterStage(registration, now(), actions).status());
    CHECK_OK(core_.OpenSession(i + 1, hello, now(), actions));
    CHECK_OK(CarryOut(actions));
  }
}

absl::Status LocalCluster::CarryOut(Actions& actions) {
  std::vector<FolderChanged> changed;
  std::vector<PlanMade> planned;
  for (Action& action : actions) {
    if (const auto* send = std::get_if<SendToStage>(&action)) {
      RETURN_IF_ERROR(stages_[send->session - 1]->Take(send->message));
    } else if (const auto* write = std::get_if<WriteJobFile>(&action)) {
      if (write->name == "metrics.jsonl") metrics_ += write->contents;
    } else if (const auto* change = std::get_if<ChangeJobFolder>(&action)) {
      changed.push_back({.job_id = change->job_id, .change = change->change});
    } else if (const auto* plan = std::get_if<MakePlan>(&action)) {
      planned.push_back(MakePlanOf(*plan));
    }
  }
  actions.clear();
  for (PlanMade& made : planned) {
    Actions more;
    core_.PlanMade(std::move(made), now(), more);
    RETURN_IF_ERROR(CarryOut(more));
  }
  for (const FolderChanged& done : changed) {
    if (done.change == ChangeJobFolder::Change::kRemove) continue;
    Actions more;
    core_.FolderChanged(done, now(), more);
    RETURN_IF_ERROR(CarryOut(more));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> LocalCluster::Run(const NewJob& job) {
  ASSIGN_OR_RETURN(const coordinator::dispatch::PlannedJob planned,
                   coordinator::dispatch::PlanJob(job));
  Actions actions;
  ASSIGN_OR_RETURN(v1::Job state, core_.CreateJob(planned, now(), actions));
  RETURN_IF_ERROR(CarryOut(actions));
  while (!coordinator::jobs::IsTerminal(state.state())) {
    const std::unique_ptr<StageMailbox::Letter> letter = mailbox_.Take();
    if (letter == nullptr) return absl::DeadlineExceededError("it hangs");
    const absl::Status received =
        core_.Receive(letter->rank + 1, letter->message, now(), actions);
    RETURN_IF_ERROR(CarryOut(actions));
    RETURN_IF_ERROR(received);
    core_.Tick(now(), actions);
    RETURN_IF_ERROR(CarryOut(actions));
    ASSIGN_OR_RETURN(state, core_.GetJob(state.id()));
  }
  return state;
}

}  // namespace penstock::testing
