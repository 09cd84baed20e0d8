#include "coordinator/dispatch/stage_links.h"

#include <utility>

#include "common/log/log.h"
#include "common/rpc/message_limit.h"
#include "common/status/status_macros.h"

namespace penstock::coordinator::dispatch {

void StageLinks::Transmit(absl::string_view stage,
                          const v1::CoordinatorMessage& message,
                          Actions& actions) const {
  const registry::StageEntry* entry = registry_.Find(stage);
  if (entry == nullptr || !entry->connected()) return;
  actions.push_back(SendToStage{entry->session, message});
}

void StageLinks::End(const registry::Loss& lost, Actions& actions) {
  if (lost.before.connected()) {
    actions.push_back(CloseSession{lost.before.session,
                                   absl::AbortedError(lost.cause.message())});
  }
  Forget(lost.before.name());
}

void StageLinks::Begin(absl::string_view stage, int64_t epoch) {
  Link& link = links_[std::string(stage)];
  CHECK_GT(epoch, link.epoch);
  link.epoch = epoch;
  link.next_seq = 1;
  link.kept.clear();
  link.abort.reset();
}

absl::Status StageLinks::Send(absl::string_view stage,
                              v1::CoordinatorMessage message,
                              Actions& actions) {
  Link& link = links_[std::string(stage)];
  message.set_term(term_);
  message.set_epoch(link.epoch);
  message.set_seq(link.next_seq);
  RETURN_IF_ERROR(common::rpc::CheckMessageSize(message));
  ++link.next_seq;
  Transmit(stage, message, actions);
  link.kept.push_back(std::move(message));
  return absl::OkStatus();
}

void StageLinks::SendUnnumbered(absl::string_view stage,
                                v1::CoordinatorMessage message,
                                Actions& actions) {
  message.set_term(term_);
  message.set_epoch(links_[std::string(stage)].epoch);
  message.set_seq(0);
  Transmit(stage, message, actions);
}

void StageLinks::Abort(absl::string_view stage, int64_t epoch,
                       const v1::Cause& cause, Actions& actions) {
  Begin(stage, epoch);
  v1::CoordinatorMessage message;
  message.set_term(term_);
  message.set_epoch(epoch);
  message.mutable_abort()->set_epoch(epoch);
  if (cause.code() != 0) *message.mutable_abort()->mutable_cause() = cause;
  message.mutable_abort()->set_release(true);
  Transmit(stage, message, actions);
  links_[std::string(stage)].abort = std::move(message);
}

bool StageLinks::Aborting(absl::string_view stage) const {
  const auto it = links_.find(std::string(stage));
  return it != links_.end() && it->second.abort.has_value();
}

bool StageLinks::Aborted(absl::string_view stage, int64_t epoch) {
  const auto it = links_.find(std::string(stage));
  if (it == links_.end() || !it->second.abort.has_value() ||
      epoch < it->second.epoch) {
    return false;
  }
  it->second.abort.reset();
  return true;
}

void StageLinks::Acknowledge(absl::string_view stage, int64_t seq) {
  const auto it = links_.find(std::string(stage));
  if (it == links_.end()) return;
  std::deque<v1::CoordinatorMessage>& kept = it->second.kept;
  while (!kept.empty() && kept.front().seq() <= seq) kept.pop_front();
}

void StageLinks::Resume(absl::string_view stage, const v1::Hello& hello,
                        Actions& actions) {
  Link& link = links_[std::string(stage)];
  if (link.abort.has_value()) {
    Transmit(stage, *link.abort, actions);
    return;
  }
  if (hello.term() == term_ && hello.epoch() == link.epoch) {
    Acknowledge(stage, hello.acked_seq());
  }
  for (const v1::CoordinatorMessage& message : link.kept) {
    Transmit(stage, message, actions);
  }
}

int64_t StageLinks::epoch(absl::string_view stage) const {
  const auto it = links_.find(std::string(stage));
  return it == links_.end() ? 0 : it->second.epoch;
}

}  // namespace penstock::coordinator::dispatch
