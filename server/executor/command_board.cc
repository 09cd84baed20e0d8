#include "server/executor/command_board.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids/op_letter.h"
#include "common/log/log.h"

namespace penstock::server::executor {

using common::sync::MutexLock;

namespace {

int64_t Nanoseconds(common::time::MonotonicTime time) {
  return absl::ToInt64Nanoseconds(time.since_zero());
}

}  // namespace

std::string Describe(const HeadCommand& head) {
  std::string text = head.name;
  if (head.op != v1::OP_UNSPECIFIED) {
    text = absl::StrCat(common::ids::OpLetter(head.op), " stage ", head.stage,
                        " micro-batch ", head.micro_batch);
  }
  return absl::StrCat(text, " of step ", head.step);
}

void CommandBoard::Add(BoardCommand command) {
  const common::time::MonotonicTime now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  if (commands_.empty()) head_since_ = now;
  commands_.push_back(std::move(command));
}

void CommandBoard::SetActivationBytes(int64_t bytes) {
  MutexLock lock(&mutex_);
  activation_bytes_ = bytes;
}

std::vector<v1::OpTiming> CommandBoard::TakeTimings() {
  MutexLock lock(&mutex_);
  return std::exchange(timings_, {});
}

void CommandBoard::Started(ModelledTime modelled) {
  const common::time::MonotonicTime now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  CHECK(!commands_.empty() && !started_);
  started_ = true;
  start_ = modelled.value_or(now);
  ++progress_;
}

void CommandBoard::GotOn() {
  MutexLock lock(&mutex_);
  ++progress_;
}

void CommandBoard::Ended(ModelledTime modelled) {
  const common::time::MonotonicTime now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  CHECK(started_);
  const BoardCommand& head = commands_.front();
  if (head.op != v1::OP_UNSPECIFIED) {
    v1::OpTiming timing;
    timing.set_op(head.op);
    timing.set_stage(head.stage);
    timing.set_micro_batch(head.micro_batch);
    timing.set_start_ns(Nanoseconds(start_));
    timing.set_end_ns(Nanoseconds(modelled.value_or(now)));
    timings_.push_back(std::move(timing));
  }
  if (head.has_deadline) slowest_ = std::max(slowest_, now - head_since_);
  commands_.pop_front();
  started_ = false;
  head_since_ = now;
}

std::optional<HeadCommand> CommandBoard::head() const {
  const common::time::MonotonicTime now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  if (commands_.empty()) return std::nullopt;
  const BoardCommand& command = commands_.front();
  HeadCommand head = {.name = command.name,
                      .step = command.step,
                      .op = command.op,
                      .stage = command.stage,
                      .micro_batch = command.micro_batch,
                      .age = now - head_since_,
                      .started = started_,
                      .has_deadline = command.has_deadline};
  if (started_) return head;
  for (const CommandWait& wait : command.waits) {
    if (wait.event->Done()) continue;
    head.waits_for = wait.edge;
    break;
  }
  return head;
}

int64_t CommandBoard::progress() const {
  MutexLock lock(&mutex_);
  return progress_;
}

absl::Duration CommandBoard::slowest() const {
  MutexLock lock(&mutex_);
  return slowest_;
}

int64_t CommandBoard::activation_bytes() const {
  MutexLock lock(&mutex_);
  return activation_bytes_;
}

}  // namespace penstock::server::executor
