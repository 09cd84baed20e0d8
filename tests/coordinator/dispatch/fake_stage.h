// A stage daemon as the coordinator sees it, without model, device and network:
// it keeps the protocol of core.h (seq, epoch, duplicates, re-attaching) and
// answers with made-up but consistent numbers. It fails the test where the
// coordinator breaks a promise: a step released twice or before it was
// reported, a gap in seq, commands of a step out of turn.
#ifndef PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_STAGE_H_
#define PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_STAGE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "penstock/v1/coordination_service.pb.h"

namespace penstock::coordinator::dispatch {

// Thread-compatible.
class FakeStage {
 public:
  FakeStage(const std::string& name, const std::string& incarnation)
      : name_(name), incarnation_(incarnation) {}

  v1::RegisterStageRequest Registration() const;
  v1::Hello Hello() const;

  // Takes a message; what it answers at once or later is in outbox().
  void Take(const v1::CoordinatorMessage& message);

  // Messages to send, oldest first; the caller empties it. What is in it when
  // the session breaks is lost.
  std::deque<v1::StageMessage>& outbox() { return outbox_; }

  // Looks at its queue again, after a change of what it says.
  void Wake() { Work(); }

  // Answers CheckInputs, which it had left unanswered.
  void AnswerCheck() { Send(CheckAnswer()); }
  // Answers ProbeOutput, likewise.
  void AnswerProbe() { Send(ProbeAnswer()); }
  // Says that it is ready, likewise.
  void AnswerAssignment() { Send(ReadyAnswer()); }

  // Says that its shard is written, likewise.
  void AnswerEnd() { Send(EndAnswer()); }

  // Says that the edge to a neighbouring virtual stage broke.
  void BreakEdge(int source_stage, int target_stage);
  void Fail(const std::string& reason, const std::string& message);

  const std::string& name() const { return name_; }
  const std::string& incarnation() const { return incarnation_; }
  int64_t applied() const { return applied_; }
  // The newest step that it has reported in this epoch.
  int64_t reported() const { return applied_ + (report_.has_value() ? 1 : 0); }
  int64_t epoch() const { return epoch_; }
  bool assigned() const { return assignment_.has_value(); }
  const v1::Assignment& assignment() const { return *assignment_; }
  int assignments() const { return assignments_; }
  const std::vector<v1::StepCommands>& commands_seen() const {
    return commands_seen_;
  }
  const std::vector<v1::ReleaseStep>& releases() const { return releases_; }
  const v1::CheckInputs& check() const { return check_; }
  const v1::ProbeOutput& probe() const { return probe_; }
  const v1::End& end() const { return end_; }
  // The newest one.
  const v1::Abort& abort() const { return abort_; }
  // Of numbered messages, duplicates left out, and of those sent that count.
  std::map<std::string, int>& counts() { return counts_; }

  // --- What it says; set before.
  std::string numerics_id = "cpu/avx2/1/0";
  std::string device = "cpu";
  int protocol = 1;             // The highest that it speaks.
  std::string host;             // Empty: one of its own.
  std::string monitor_address;  // Empty: likewise, which all can reach.
  int64_t memory_bytes = 0;
  std::string memory_group;
  std::optional<v1::MemoryBytes> memory;       // As assembled.
  std::optional<v1::MemoryBytes> peak_memory;  // At the end.
  std::string fingerprint = "f00d";
  int64_t sequences = 100;
  int64_t validation_sequences = 10;
  int64_t sequence_length = 0;  // 0: what it was asked for.
  int64_t largest_id = 255;
  std::string masked_line;
  std::optional<v1::Cause> check_failure;
  std::string failed_key;             // Of check_failure.
  std::string model_digest = "ca11";  // Where weights are loaded.
  int64_t progress = 0;               // Of its heartbeats.
  bool answers_check = true;
  bool answers_probe = true;
  std::optional<v1::Cause> probe_failure;
  // Whether what it writes is seen by the coordinator: the same disk.
  bool shares_disk = true;
  bool answers_assignment = true;
  bool reports_steps = true;
  bool answers_end = true;
  // Of each step; the loss of each micro-batch in nats, valid tokens.
  double loss = 10;
  int64_t valid_tokens = 4;
  int64_t evaluated_tokens = 4;  // Valid ones of an evaluation.
  std::string nonfinite;         // In step `nonfinite_step`.
  int64_t nonfinite_step = 0;
  int64_t nonfinite_until = 0;  // Also in the steps up to this one.
  double sum_squares = 1;

 private:
  void Work();
  v1::StepReport Report(const v1::StepCommands& commands) const;
  void Send(const v1::StageMessage& message);
  void SayAgain();
  v1::StageMessage CheckAnswer() const;
  v1::StageMessage ProbeAnswer() const;
  v1::StageMessage ReadyAnswer() const;
  v1::StageMessage EvalAnswer(int64_t step) const;
  v1::StageMessage EndAnswer() const;
  bool HasHead() const;

  const std::string name_;
  const std::string incarnation_;
  int64_t term_ = 0;
  int64_t epoch_ = 0;
  int64_t seq_ = 0;
  v1::CheckInputs check_;
  v1::ProbeOutput probe_;
  std::optional<v1::Assignment> assignment_;
  int assignments_ = 0;
  std::deque<v1::CoordinatorMessage> queue_;  // Commands and End.
  std::optional<v1::StepReport> report_;      // Of applied_ + 1.
  v1::ReleaseStep last_release_;
  int64_t applied_ = 0;
  int64_t evaluated_ = 0;
  bool ended_ = false;
  std::optional<v1::StageFailure> failure_;
  v1::End end_;
  v1::Abort abort_;
  // The newest of each kind in this epoch.
  std::map<v1::StageMessage::BodyCase, v1::StageMessage> said_;
  std::deque<v1::StageMessage> outbox_;
  std::vector<v1::StepCommands> commands_seen_;
  std::vector<v1::ReleaseStep> releases_;
  std::map<std::string, int> counts_;
};

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_TESTS_COORDINATOR_DISPATCH_FAKE_STAGE_H_
