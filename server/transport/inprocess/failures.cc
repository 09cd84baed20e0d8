// Failures: who fails of what, and who is called back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "server/transport/inprocess/exchange.h"

namespace penstock::server::transport::inprocess {

using common::sync::MutexLock;

void Exchange::FailLocked(Member* member, const Channel& channel,
                          const absl::Status& failure, Calls& calls) {
  if (member == nullptr || !member->failure.status.ok() || member->gone) return;
  member->failure = {.status = failure, .edge = channel.edge};
  TellFailureLocked(*member, calls);
  EndMemberLocked(*member);
}

void Exchange::TellFailureLocked(Member& member, Calls& calls) {
  if (!member.on_failure) return;
  ++member.callbacks;
  calls.push_back(&member);
}

void Exchange::EndMemberLocked(Member& member) {
  member.ended->Signal(member.failure.status);
  for (Channel* channel : member.channels) {
    for (End* end : {&channel->source, &channel->target}) {
      if (end->member != &member) continue;
      const size_t kept = channel->copying ? 1 : 0;
      while (end->operations.size() > kept) {
        Finish(*end->operations.back(), member.failure.status);
        end->operations.pop_back();
      }
    }
  }
}

void Exchange::RunCalls(const Calls& calls) {
  for (Member* member : calls) {
    std::function<void(const Failure&)> callback;
    Failure failure;
    {
      MutexLock lock(&mutex_);
      callback = member->on_failure;
      failure = member->failure;
    }
    callback(failure);
    MutexLock lock(&mutex_);
    --member->callbacks;
  }
}

void Exchange::FailPeersLocked(Member& member, absl::string_view what,
                               Calls& calls) {
  for (Channel* channel : member.channels) {
    for (End* end : {&channel->source, &channel->target}) {
      if (end->member == &member) continue;
      FailLocked(
          end->member, *channel,
          absl::UnavailableError(absl::StrCat(
              ToString(channel->edge), ": peer ", member.name, " ", what)),
          calls);
    }
  }
}

void Exchange::Abort(Member& member, const absl::Status& cause) {
  CHECK(!cause.ok()) << "Abort needs a cause";
  Calls calls;
  {
    MutexLock lock(&mutex_);
    if (member.gone) return;
    member.gone = true;
    if (member.failure.status.ok()) member.failure.status = cause;
    EndMemberLocked(member);
    // What is being copied is done when the copy is: at most a memcpy away.
    const auto quiet = [this, &member] {
      mutex_.AssertHeld();
      return std::none_of(
          member.channels.begin(), member.channels.end(),
          [](const Channel* channel) { return channel->copying; });
    };
    mutex_.Await(absl::Condition(&quiet));
    // After goodbyes both ways the peers do not miss this rank.
    if (!member.goodbye) {
      FailPeersLocked(member, "closed the connection without goodbye", calls);
    }
  }
  RunCalls(calls);
}

}  // namespace penstock::server::transport::inprocess
