#include "server/executor/step_runner.h"

#include <cmath>
#include <utility>

#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::executor {
namespace {

constexpr int kTiedMicroBatch = -1;  // Tag of the messages of a tied edge.

int64_t Busy(const std::vector<v1::OpTiming>& timings) {
  int64_t busy = 0;
  for (const v1::OpTiming& timing : timings) {
    busy += timing.end_ns() - timing.start_ns();
  }
  return busy;
}

}  // namespace

StepRunner::StepRunner(const StageAssignment& assignment, const Deps& deps)
    : assignment_(assignment),
      deps_(deps),
      compute_(*deps.compute),
      ended_(deps.transport->ended()),
      begun_(*deps.clock) {
  for (size_t i = 0; i < assignment.chunks.size(); ++i) {
    if (assignment.chunks[i].range.head) head_ = i;
    if (assignment.chunks[i].range.embedding) embedding_ = i;
  }
}

absl::StatusOr<std::unique_ptr<StepRunner>> StepRunner::Create(
    const StageAssignment& assignment, const Deps& deps) {
  std::unique_ptr<StepRunner> runner(new StepRunner(assignment, deps));
  RETURN_IF_ERROR(runner->Allocate());
  return runner;
}

absl::Status StepRunner::Allocate() {
  for (size_t i = 0; i < assignment_.chunks.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<model::Chunk> chunk,
                     model::Chunk::Create(
                         *deps_.device, compute_, *deps_.parameters,
                         assignment_.chunk_options(i), absl::InfiniteFuture()));
    chunks_.push_back(std::move(chunk));
  }
  ASSIGN_OR_RETURN(stash_, ActivationStash::Create(*deps_.device, assignment_));
  ASSIGN_OR_RETURN(
      ports_, EdgePorts::Create(*deps_.transport, assignment_, deps_.epoch));
  ASSIGN_OR_RETURN(inputs_, HostInputs::Create(*deps_.device, assignment_,
                                               chunks_, deps_.source));
  if (has_head()) {
    ASSIGN_OR_RETURN(losses_, LossBuffer::Create(*deps_.device, assignment_));
  }
  ASSIGN_OR_RETURN(passed_, deps_.device->CreateEvent());
  return deps_.device->ops().ReserveScratch(assignment_.op_sizes());
}

v1::MemoryBytes StepRunner::Predict(const device::Ops& ops,
                                    const StageAssignment& assignment) {
  const StashBytes stash = PredictStash(assignment);
  int64_t constants = 0;
  for (size_t i = 0; i < assignment.chunks.size(); ++i) {
    constants += model::Chunk::Predict(assignment.chunk_options(i)).constants;
    if (assignment.chunks[i].range.head) {
      constants += LossBuffer::PredictBytes(assignment);
    }
  }
  v1::MemoryBytes bytes;
  bytes.set_activation_slots(stash.activation_slots);
  bytes.set_workspace(stash.workspace + constants +
                      ops.ScratchBytes(assignment.op_sizes()));
  bytes.set_transfer_slots(stash.transfer_slots);
  return bytes;
}

absl::StatusOr<v1::StepReport> StepRunner::Train(
    const Program& program, common::time::MonotonicTime came,
    const Stopped& stopped) {
  Begin(came);
  deps_.parameters->BeginStep();
  RETURN_IF_ERROR(RunCommands(program, stopped, nullptr));
  EndTied(program);
  Enqueue({.name = "step end", .step = program.step}, [this] {
    deps_.parameters->EnqueueSumSquares(compute_);
    if (has_head()) losses_->CopyToHost(compute_);
  });
  RETURN_IF_ERROR(AwaitStream());

  v1::StepReport report;
  report.set_step(program.step);
  const std::vector<model::ParameterSpec>& owned = deps_.parameters->owned();
  const absl::Span<const double> sums = deps_.parameters->sum_squares();
  for (size_t i = 0; i < owned.size(); ++i) {
    v1::TensorSum& sum = *report.add_sums();
    sum.set_canonical_index(owned[i].index);
    sum.set_sum_squares(sums[i]);
    if (!std::isfinite(sums[i]) && report.nonfinite().empty()) {
      report.set_nonfinite(owned[i].name);
    }
  }
  for (int m = 0; has_head() && m < program.micro_batches; ++m) {
    *report.add_losses() = losses_->Sum(m);
  }
  const std::vector<v1::OpTiming> timings = deps_.board->TakeTimings();
  CHECK(!timings.empty()) << "the stream has not run the step";
  const int64_t start = timings.front().start_ns();
  report.set_busy_ns(Busy(timings));
  report.set_span_ns(
      absl::ToInt64Nanoseconds(deps_.clock->Monotonic().since_zero()) - start);
  for (const v1::OpTiming& timing : timings) {
    if (!program.full_timings) break;
    v1::OpTiming& relative = *report.add_timings();
    relative = timing;
    relative.set_start_ns(timing.start_ns() - start);
    relative.set_end_ns(timing.end_ns() - start);
  }
  report.set_peak_activation_bytes(stash_->peak_activation_bytes());
  report.set_peak_in_flight(stash_->peak_in_flight());
  return report;
}

absl::StatusOr<v1::EvalReport> StepRunner::Evaluate(
    const Program& program, common::time::MonotonicTime came,
    const Stopped& stopped) {
  Begin(came);
  v1::EvalReport report;
  report.set_step(program.step);
  RETURN_IF_ERROR(RunCommands(program, stopped, &report));
  deps_.board->TakeTimings();
  return report;
}

absl::StatusOr<v1::ApplyAck> StepRunner::Apply(
    const v1::ReleaseStep& release, common::time::MonotonicTime came) {
  Begin(came);
  Enqueue({.name = "apply", .step = release.step()}, [this, &release] {
    if (release.decision() == v1::ReleaseStep::DECISION_SKIP) {
      deps_.parameters->Skip(compute_);
      return;
    }
    deps_.parameters->Apply(compute_,
                            {.grad_scale = release.grad_scale(),
                             .learning_rate = release.learning_rate(),
                             .bias_correction1 = release.bias_correction1(),
                             .bias_correction2 = release.bias_correction2()});
  });
  RETURN_IF_ERROR(AwaitStream());
  deps_.parameters->Completed();
  v1::ApplyAck ack;
  ack.set_step(release.step());
  return ack;
}

void StepRunner::Begin(common::time::MonotonicTime came) {
  // The stream has passed what was before, so nothing waits for its begin.
  begun_.Reset();
  begun_.Signal(absl::OkStatus(), came);
  compute_.Wait(begun_);
}

absl::Status StepRunner::RunCommands(const Program& program,
                                     const Stopped& stopped,
                                     v1::EvalReport* evaluation) {
  stash_->BeginStep();
  ports_->BeginProgram(program.step);
  if (program.trains() && embedding_ != kNone &&
      assignment_.tied_gradient != kNone) {
    ports_->Post(assignment_.tied_gradient, kTiedMicroBatch,
                 deps_.parameters->tied_head_gradient(), compute_);
  }
  size_t next_post = 0;
  PostReceives(program, next_post, 0);
  const int count = program.commands.size();
  std::vector<int> evaluated;  // By the head, since the last copy.
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(stopped());
    const ProgramCommand& command = program.commands[i];
    RETURN_IF_ERROR(RunCommand(program, command));
    PostReceives(program, next_post, i + 1);
    if (program.trains()) {
      ExchangeTied(program, command);
      continue;
    }
    if (command.chunk == head_) evaluated.push_back(command.micro_batch);
    // The rings of events and the loss buffer are made for M of them.
    if ((i + 1) % assignment_.micro_batches != 0 && i + 1 != count) continue;
    if (has_head()) losses_->CopyToHost(compute_);
    RETURN_IF_ERROR(AwaitStream());
    for (int micro_batch : evaluated) {
      const v1::MicroBatchLoss loss = losses_->Sum(micro_batch);
      evaluation->set_loss_sum(evaluation->loss_sum() + loss.loss_sum());
      evaluation->set_valid_tokens(evaluation->valid_tokens() +
                                   loss.valid_tokens());
    }
    evaluated.clear();
  }
  return absl::OkStatus();
}

void StepRunner::PostReceives(const Program& program, size_t& next,
                              int enqueued) {
  for (; next < program.posts.size() && program.posts[next].after <= enqueued;
       ++next) {
    const Post& post = program.posts[next];
    device::Tensor into;
    for (size_t i = 0; i < chunks_.size(); ++i) {
      if (assignment_.chunks[i].activation_in == post.edge) {
        into = chunks_[i]->Input(stash_->slot(i, post.slot));
      }
    }
    if (!into.present()) into = stash_->gradient_slot(post.edge, post.slot);
    ports_->Post(post.edge, post.micro_batch, into, compute_);
  }
}

absl::Status StepRunner::RunCommand(const Program& program,
                                    const ProgramCommand& command) {
  using Kind = Boundary::Kind;
  BoardCommand entry = {
      .name = CommandName(command.op, command.stage, command.micro_batch),
      .step = program.step,
      .op = command.op,
      .stage = command.stage,
      .micro_batch = command.micro_batch};
  if (command.input.kind == Kind::kEdge) {
    entry.waits.push_back(
        {.event = &ports_->received(command.input.edge, command.input.message),
         .edge = command.input.edge});
  }
  const AssignedChunk& chunk = assignment_.chunks[command.chunk];
  device::Tensor output;
  if (command.output.kind == Kind::kEdge) {
    const int edge = command.output.edge;
    output = stash_->send_buffer(edge, ports_->next_buffer(edge));
    if (const device::Event* free = ports_->buffer_free(edge)) {
      entry.waits.push_back({.event = free, .edge = edge});
    }
  } else if (command.output.kind == Kind::kLocal) {
    output =
        command.op == v1::OP_FORWARD
            ? chunks_[chunk.next_chunk]->Input(
                  stash_->slot(chunk.next_chunk, command.output.slot))
            : stash_->local_gradient(chunk.previous_chunk, command.output.slot);
  }
  if (command.op == v1::OP_FORWARD) {
    RETURN_IF_ERROR(inputs_->Fill(program, command));
  }
  stash_->Begin(command);
  deps_.board->SetActivationBytes(stash_->activation_bytes());
  Enqueue(
      std::move(entry), [&] { Compute(program, command, output); },
      chunk.modelled_times.of(command.op));
  if (command.output.kind == Kind::kEdge) {
    ports_->Send(command.output.edge, command.micro_batch, output, compute_);
  }
  stash_->End(command);
  deps_.board->SetActivationBytes(stash_->activation_bytes());
  return compute_.status();
}

void StepRunner::Compute(const Program& program, const ProgramCommand& command,
                         const device::Tensor& output) {
  const model::Chunk& chunk = *chunks_[command.chunk];
  std::byte* const slot = stash_->slot(command.chunk, command.slot);
  if (command.op == v1::OP_FORWARD) {
    inputs_->Copy(compute_, command, slot);
    model::Chunk::ForwardArgs args = {.slot = slot,
                                      .workspace = stash_->workspace(),
                                      .output = output,
                                      .mode = program.trains()
                                                  ? model::Mode::kTrain
                                                  : model::Mode::kEvaluate};
    if (chunk.has_head()) {
      args.sequence_loss = losses_->sequence_loss(command.micro_batch);
      args.sequence_valid = losses_->sequence_valid(command.micro_batch);
    }
    chunk.Forward(compute_, args);
    return;
  }
  model::Chunk::BackwardArgs args = {
      .slot = slot, .workspace = stash_->workspace(), .input_gradient = output};
  if (command.held != kNone) {
    args.held = stash_->held(command.chunk, command.held);
  }
  if (command.input.kind == Boundary::Kind::kEdge) {
    args.output_gradient =
        stash_->gradient_slot(command.input.edge, command.input.slot);
  } else if (command.input.kind == Boundary::Kind::kLocal) {
    args.output_gradient =
        stash_->local_gradient(command.chunk, command.input.slot);
  }
  if (command.op == v1::OP_BACKWARD) {
    chunk.Backward(compute_, args);
  } else if (command.op == v1::OP_BACKWARD_INPUT) {
    chunk.BackwardInput(compute_, args);
  } else {
    chunk.BackwardWeight(compute_, args);
  }
}

// The two messages of a tied embedding need no buffers and no waits of their
// own: the head's gradient is taken before the sum can be sent, and the sum
// lands in the same tensor; the sum is taken before the head can report the
// step, so before anybody writes the embedding's gradient again.
void StepRunner::ExchangeTied(const Program& program,
                              const ProgramCommand& command) {
  if (!command.last_weight || assignment_.tied_gradient == kNone) return;
  model::ParameterStore& parameters = *deps_.parameters;
  if (command.chunk == head_) {
    ports_->Send(assignment_.tied_gradient, kTiedMicroBatch,
                 parameters.tied_head_gradient(), compute_);
    ports_->Post(assignment_.tied_sum, kTiedMicroBatch,
                 parameters.tied_head_gradient(), compute_);
  } else if (command.chunk == embedding_) {
    Enqueue(
        {.name = "tied sum",
         .step = program.step,
         .stage = command.stage,
         .waits = {{.event = &ports_->received(assignment_.tied_gradient, 0),
                    .edge = assignment_.tied_gradient}}},
        [&] { parameters.CombineTied(compute_); });
    ports_->Send(assignment_.tied_sum, kTiedMicroBatch, parameters.tied_sum(),
                 compute_);
  }
}

void StepRunner::EndTied(const Program& program) {
  const model::TiedRole role = deps_.parameters->tied_role();
  if (role == model::TiedRole::kWhole) {
    deps_.parameters->CombineTied(compute_);
  } else if (role == model::TiedRole::kHead) {
    Enqueue({.name = "tied sum",
             .step = program.step,
             .stage = assignment_.chunks[head_].stage,
             .waits = {{.event = &ports_->received(assignment_.tied_sum, 0),
                        .edge = assignment_.tied_sum}}},
            [] {});
  }
}

void StepRunner::Enqueue(BoardCommand command,
                         const std::function<void()>& work,
                         absl::Duration modelled) {
  CommandBoard* const board = deps_.board;
  const device::Stream* const stream = &compute_;
  const std::vector<CommandWait> waits = command.waits;
  board->Add(std::move(command));
  for (const CommandWait& wait : waits) compute_.Wait(*wait.event);
  compute_.Call([board, stream](const absl::Status& status) {
    if (status.ok()) board->Started(stream->modelled_now());
  });
  work();
  compute_.Occupy(modelled, *ended_);
  compute_.Call([board, stream](const absl::Status& status) {
    if (status.ok()) board->Ended(stream->modelled_now());
  });
}

absl::Status StepRunner::AwaitStream() {
  compute_.Record(*passed_);
  return passed_->Await(absl::InfiniteFuture());
}

}  // namespace penstock::server::executor
