#include "tests/coordinator/dispatch/fake_stage.h"

#include <algorithm>
#include <utility>

#include "coordinator/planner/parameter_sizes.h"
#include "gtest/gtest.h"

namespace penstock::coordinator::dispatch {
namespace {

planner::ModelShape ShapeOf(const v1::ModelConfig& model) {
  return {.family = model.family() == v1::ModelConfig::FAMILY_GPT2
                        ? planner::Family::kGpt2
                        : planner::Family::kLlama,
          .layers = model.layers(),
          .width = model.width(),
          .heads = model.heads(),
          .kv_heads = model.kv_heads(),
          .head_dim = model.head_dim(),
          .ffn_width = model.ffn_width(),
          .context = model.context(),
          .vocab = model.vocab(),
          .tied = model.tied_embeddings(),
          .dropout = model.dropout() > 0};
}

// (index, elements) of the parameters of these chunks.
std::vector<std::pair<int64_t, int64_t>> Parameters(
    const v1::Assignment& assignment) {
  const planner::ModelShape shape = ShapeOf(assignment.model());
  std::vector<std::pair<int64_t, int64_t>> result;
  const auto tensors = [](const std::vector<planner::ParameterGroup>& groups) {
    int64_t count = 0;
    for (const auto& group : groups) count += group.tensors;
    return count;
  };
  const auto add = [&](int64_t first,
                       std::vector<planner::ParameterGroup> groups) {
    for (const planner::ParameterGroup& group : groups) {
      for (int t = 0; t < group.tensors; ++t) {
        // Where several lie together the first gets all elements.
        result.emplace_back(first++, t == 0 ? group.elements : 0);
      }
    }
  };
  const int64_t embedding = tensors(planner::EmbeddingGroups(shape));
  const int64_t block = tensors(planner::BlockGroups(shape));
  for (const v1::Chunk& chunk : assignment.chunks()) {
    if (chunk.embedding()) add(0, planner::EmbeddingGroups(shape));
    for (int64_t b = chunk.first_block(); b < chunk.end_block(); ++b) {
      add(embedding + b * block, planner::BlockGroups(shape));
    }
    if (chunk.head()) {
      auto groups = planner::HeadGroups(shape);
      if (shape.tied) groups.pop_back();
      add(embedding + shape.layers * block, groups);
    }
  }
  return result;
}

}  // namespace

v1::RegisterStageRequest FakeStage::Registration() const {
  v1::RegisterStageRequest request;
  request.set_stage_name(name_);
  request.set_incarnation(incarnation_);
  request.mutable_device()->set_kind(device);
  request.add_numerics_ids(numerics_id);
  request.mutable_protocol()->set_lowest(1);
  request.mutable_protocol()->set_highest(protocol);
  request.set_host(host.empty() ? "host-of-" + name_ : host);
  request.mutable_device()->set_memory_bytes(memory_bytes);
  request.mutable_device()->set_memory_group(memory_group);
  request.set_pid(1000 + static_cast<int>(name_.back()));
  request.set_monitor_address(
      monitor_address.empty() ? "10.0.0.1:7" + name_.substr(name_.size() - 1)
                              : monitor_address);
  request.set_data_address("127.0.0.1:1" + name_.substr(name_.size() - 1));
  return request;
}

v1::Hello FakeStage::Hello() const {
  v1::Hello hello;
  hello.set_stage_name(name_);
  hello.set_incarnation(incarnation_);
  hello.set_term(term_);
  hello.set_epoch(epoch_);
  hello.set_applied_step(applied_);
  hello.set_acked_seq(seq_);
  if (report_.has_value()) *hello.mutable_report() = *report_;
  if (applied_ > 0) *hello.mutable_release() = last_release_;
  return hello;
}

void FakeStage::Send(const v1::StageMessage& message) {
  said_[message.body_case()] = message;
  outbox_.push_back(message);
}

bool FakeStage::HasHead() const {
  for (const v1::Chunk& chunk : assignment_->chunks()) {
    if (chunk.head()) return true;
  }
  return false;
}

v1::StageMessage FakeStage::CheckAnswer() const {
  v1::StageMessage message;
  v1::InputsChecked& checked = *message.mutable_inputs_checked();
  if (check_failure.has_value()) {
    *checked.mutable_failure() = *check_failure;
    checked.set_failed_key(failed_key);
    return message;
  }
  if (!check_.model_path().empty()) checked.set_model_digest(model_digest);
  if (check_.has_data()) {
    const int64_t length =
        sequence_length > 0 ? sequence_length : check_.data().sequence_length();
    v1::InputReport& train = *checked.mutable_train();
    train.set_fingerprint(fingerprint);
    train.set_sequences(sequences);
    int64_t tokens = 0;  // Tests claim lengths that no data have.
    if (__builtin_mul_overflow(sequences, length, &tokens)) tokens = 0;
    train.set_tokens(tokens + 1);
    train.set_sequence_length(length);
    train.set_largest_id(largest_id);
    train.set_masked_line(masked_line);
    train.add_files()->set_path(check_.data().train_path());
    if (check_.data().validation_millionths() > 0) {
      v1::InputReport& validation = *checked.mutable_validation();
      validation = train;
      validation.set_sequences(validation_sequences);
    }
  }
  return message;
}

v1::StageMessage FakeStage::ProbeAnswer() const {
  v1::StageMessage message;
  v1::OutputProbed& probed = *message.mutable_output_probed();
  if (probe_failure.has_value()) *probed.mutable_failure() = *probe_failure;
  return message;
}

v1::StageMessage FakeStage::ReadyAnswer() const {
  v1::StageMessage message;
  v1::StageReady& ready = *message.mutable_ready();
  for (const auto& [index, elements] : Parameters(*assignment_)) {
    v1::ParameterInfo& parameter = *ready.add_parameters();
    parameter.set_name("p" + std::to_string(index));
    parameter.set_canonical_index(index);
    parameter.set_elements(elements);
    parameter.set_owned(true);
  }
  if (memory.has_value()) *ready.mutable_memory() = *memory;
  return message;
}

v1::StageMessage FakeStage::EvalAnswer(int64_t step) const {
  v1::StageMessage message;
  v1::EvalReport& report = *message.mutable_eval_report();
  report.set_step(step);
  report.set_loss_sum(2.0 * evaluated_tokens);
  report.set_valid_tokens(evaluated_tokens);
  return message;
}

v1::StageMessage FakeStage::EndAnswer() const {
  v1::StageMessage message;
  v1::EndReport& report = *message.mutable_end_report();
  for (const auto& [index, elements] : Parameters(*assignment_)) {
    v1::TensorDigest& digest = *report.add_digests();
    digest.set_name("p" + std::to_string(index));
    digest.set_sha256(std::string(32, static_cast<char>(index)));
    report.add_shard_tensors(digest.name());
  }
  report.set_shard_file(end_.shard_file());
  if (peak_memory.has_value()) *report.mutable_peak_memory() = *peak_memory;
  return message;
}

v1::StepReport FakeStage::Report(const v1::StepCommands& commands) const {
  v1::StepReport report;
  report.set_step(commands.step());
  for (const auto& [index, elements] : Parameters(*assignment_)) {
    v1::TensorSum& sum = *report.add_sums();
    sum.set_canonical_index(index);
    sum.set_sum_squares(sum_squares);
  }
  for (int m = 0; HasHead() && m < assignment_->micro_batches(); ++m) {
    v1::MicroBatchLoss& entry = *report.add_losses();
    entry.set_micro_batch(m);
    entry.set_loss_sum(loss);
    entry.set_valid_tokens(valid_tokens);
  }
  if (commands.step() >= nonfinite_step &&
      commands.step() <= std::max(nonfinite_step, nonfinite_until)) {
    report.set_nonfinite(nonfinite);
  }
  int64_t at = 0;
  for (const v1::Command& command : commands.commands()) {
    if (!commands.full_timings()) break;
    v1::OpTiming& timing = *report.add_timings();
    timing.set_op(command.op());
    timing.set_stage(command.stage());
    timing.set_micro_batch(command.micro_batch());
    timing.set_start_ns(at);
    timing.set_end_ns(at += 1000000);
  }
  report.set_busy_ns(commands.commands_size() * 1000000);
  report.set_span_ns(commands.commands_size() * 1000000);
  report.set_peak_in_flight(1);
  report.set_peak_activation_bytes(64);
  report.set_acked_seq(seq_);
  return report;
}

// What stands at the head of the queue and can run, runs.
void FakeStage::Work() {
  while (!queue_.empty() && !failure_.has_value()) {
    const v1::CoordinatorMessage& message = queue_.front();
    if (message.has_end()) {
      ended_ = true;
      if (answers_end) Send(EndAnswer());
    } else if (message.commands().kind() == v1::StepCommands::KIND_EVALUATE) {
      if (message.commands().step() != applied_) return;
      evaluated_ = applied_;
      if (HasHead()) Send(EvalAnswer(applied_));
    } else {
      if (report_.has_value() || !reports_steps) return;
      if (message.commands().step() != applied_ + 1) return;
      report_ = Report(message.commands());
      v1::StageMessage out;
      *out.mutable_step_report() = *report_;
      ++counts_["sent"];
      Send(out);
    }
    queue_.pop_front();
  }
}

// After a broken session: the newest of each kind, in the order in which a job
// makes them.
void FakeStage::SayAgain() {
  using Kind = v1::StageMessage::BodyCase;
  for (const Kind kind :
       {Kind::kInputsChecked, Kind::kOutputProbed, Kind::kReady,
        Kind::kApplyAck, Kind::kStepReport, Kind::kEvalReport, Kind::kEndReport,
        Kind::kFailure, Kind::kAborted}) {
    if (const auto said = said_.find(kind); said != said_.end()) {
      const v1::StageMessage again = said->second;
      Send(again);
    }
  }
}

void FakeStage::Take(const v1::CoordinatorMessage& message) {
  ASSERT_GE(message.term(), term_);
  if (message.term() == term_ && message.epoch() < epoch_) return;  // Stale.
  if (message.has_abort()) {
    abort_ = message.abort();
    term_ = message.term();
    epoch_ = message.epoch();
    seq_ = 0;
    queue_.clear();
    report_.reset();
    failure_.reset();
    assignment_.reset();
    assignments_ = 0;
    applied_ = evaluated_ = 0;
    ended_ = false;
    said_.clear();
    v1::StageMessage out;
    out.mutable_aborted()->set_epoch(epoch_);
    Send(out);
    return;
  }
  if (message.seq() == 0) {
    term_ = message.term();
    if (message.has_welcome()) SayAgain();
    return;
  }
  if (message.epoch() > epoch_) {
    epoch_ = message.epoch();
    seq_ = 0;
    said_.clear();
  }
  if (message.seq() <= seq_) return;  // A duplicate: see SayAgain.
  ASSERT_EQ(message.seq(), seq_ + 1) << name_ << " got a gap";
  seq_ = message.seq();
  ++counts_["received"];
  if (message.has_check_inputs()) {
    check_ = message.check_inputs();
    if (answers_check) Send(CheckAnswer());
  } else if (message.has_probe_output()) {
    probe_ = message.probe_output();
    if (answers_probe) Send(ProbeAnswer());
  } else if (message.has_assignment()) {
    assignment_ = message.assignment();
    ASSERT_EQ(++assignments_, 1) << name_ << " was assigned twice";
    if (answers_assignment) Send(ReadyAnswer());
  } else if (message.has_release()) {
    const v1::ReleaseStep& release = message.release();
    ASSERT_TRUE(report_.has_value()) << name_ << " did not report";
    ASSERT_EQ(release.step(), applied_ + 1) << name_;
    report_.reset();
    last_release_ = release;
    releases_.push_back(release);
    ++applied_;
    v1::StageMessage out;
    out.mutable_apply_ack()->set_step(applied_);
    out.mutable_apply_ack()->set_acked_seq(seq_);
    ++counts_["sent"];
    Send(out);
    Work();
  } else {
    if (message.has_end()) end_ = message.end();
    if (message.has_commands()) commands_seen_.push_back(message.commands());
    queue_.push_back(message);
    Work();
  }
}

void FakeStage::BreakEdge(int source_stage, int target_stage) {
  v1::StageFailure failure;
  failure.set_epoch(epoch_);
  failure.set_step(applied_ + 1);
  failure.mutable_cause()->set_code(14);
  failure.mutable_cause()->set_reason("EDGE_BROKEN");
  failure.mutable_cause()->set_message(name_ + ": edge " +
                                       std::to_string(source_stage) + "->" +
                                       std::to_string(target_stage) + " reset");
  failure.mutable_edge()->set_source_stage(source_stage);
  failure.mutable_edge()->set_target_stage(target_stage);
  failure.mutable_edge()->set_kind(v1::EDGE_KIND_ACTIVATION);
  failure_ = failure;
  v1::StageMessage out;
  *out.mutable_failure() = failure;
  Send(out);
}

void FakeStage::Fail(const std::string& reason, const std::string& message) {
  v1::StageFailure failure;
  failure.set_epoch(epoch_);
  failure.set_step(applied_ + 1);
  failure.mutable_cause()->set_code(8);
  failure.mutable_cause()->set_reason(reason);
  failure.mutable_cause()->set_message(message);
  failure_ = failure;
  v1::StageMessage out;
  *out.mutable_failure() = failure;
  Send(out);
}

}  // namespace penstock::coordinator::dispatch
