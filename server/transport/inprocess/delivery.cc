// Messages: queued, ready, checked, copied, done.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "server/transport/inprocess/exchange.h"

namespace penstock::server::transport::inprocess {

using common::sync::MutexLock;

void Exchange::Begin(Member& member, Channel& channel, EdgeRole role,
                     const std::shared_ptr<Operation>& operation) {
  operation->done->Reset();
  Calls calls;
  {
    MutexLock lock(&mutex_);
    const bool sends = role == EdgeRole::kSource;
    End& end = sends ? channel.source : channel.target;
    const End& peer = sends ? channel.target : channel.source;
    CHECK(end.member == &member) << ToString(channel.edge) << ": "
                                 << member.name << " is not at this end";
    if (!member.failure.status.ok())
      return Finish(*operation, member.failure.status);
    if (member.goodbye) {
      return Finish(*operation, absl::FailedPreconditionError(absl::StrCat(
                                    ToString(channel.edge), ": closed")));
    }
    if (role == EdgeRole::kTarget) {
      CHECK_LT(static_cast<int>(end.operations.size()), end.capacity)
          << ToString(channel.edge) << ": more receives than its capacity";
    }
    end.operations.push_back(operation);
    const bool peer_left =
        !peer.name.empty() && (peer.member == nullptr || peer.member->gone);
    if (peer_left || (peer.member != nullptr && peer.member->goodbye)) {
      FailLocked(&member, channel,
                 absl::UnavailableError(absl::StrCat(
                     ToString(channel.edge), ": peer ", peer.name,
                     peer_left ? " closed the connection without goodbye"
                               : " said goodbye while a message was pending")),
                 calls);
    }
  }
  RunCalls(calls);
}

void Exchange::Ready(Channel& channel,
                     const std::shared_ptr<Operation>& operation,
                     const absl::Status& status) {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    if (operation->closed) return;
    if (status.ok()) {
      operation->ready = true;
    } else {
      const bool sends =
          std::find(channel.source.operations.begin(),
                    channel.source.operations.end(),
                    operation) != channel.source.operations.end();
      End& end = sends ? channel.source : channel.target;
      FailLocked(
          end.member, channel,
          absl::Status(status.code(),
                       absl::StrCat(ToString(channel.edge), ", ",
                                    ToString(operation->tag),
                                    ": its stream failed: ", status.message())),
          calls);
    }
    PumpLocked(channel, calls);
  }
  RunCalls(calls);
}

bool Exchange::DeliverableLocked(const Channel& channel) const {
  return !channel.copying && !channel.stalled &&
         !channel.source.operations.empty() &&
         !channel.target.operations.empty() &&
         channel.source.operations.front()->ready &&
         channel.target.operations.front()->ready;
}

void Exchange::PumpLocked(Channel& channel, Calls& calls) {
  if (options_.max_delay <= absl::ZeroDuration()) {
    while (DeliverableLocked(channel)) DeliverLocked(channel, calls);
  } else if (DeliverableLocked(channel) && !channel.scheduled) {
    channel.scheduled = true;
    scheduled_.push_back(&channel);
  }
}

absl::Status Exchange::CheckLocked(Channel& channel) {
  for (const Fault& fault : options_.faults) {
    if (fault.edge != channel.edge || fault.message != channel.delivered) {
      continue;
    }
    if (fault.kind == FaultKind::kStall) {
      channel.stalled = true;
      return absl::OkStatus();
    }
    return absl::UnavailableError("the connection broke (injected fault)");
  }
  const Operation& sent = *channel.source.operations.front();
  const Operation& wanted = *channel.target.operations.front();
  if (sent.tag != wanted.tag) {
    return absl::InternalError(absl::StrCat("received ", ToString(sent.tag),
                                            " where ", ToString(wanted.tag),
                                            " was expected"));
  }
  if (FormDigest(sent.tensor) != FormDigest(wanted.tensor)) {
    return absl::InternalError(absl::StrCat(
        ToString(wanted.tag), ": received a tensor of another type or shape ",
        "than the expected ", device::Name(wanted.tensor.type()), " ",
        wanted.tensor.shape().ToString()));
  }
  return absl::OkStatus();
}

void Exchange::DeliverLocked(Channel& channel, Calls& calls) {
  if (const absl::Status wrong = CheckLocked(channel); !wrong.ok()) {
    const auto at = [&channel, &wrong](const End& peer) {
      return absl::Status(wrong.code(),
                          absl::StrCat(ToString(channel.edge), ": peer ",
                                       peer.name, ": ", wrong.message()));
    };
    FailLocked(channel.target.member, channel, at(channel.source), calls);
    FailLocked(channel.source.member, channel, at(channel.target), calls);
    return;
  }
  if (channel.stalled) return;
  const std::shared_ptr<Operation> send = channel.source.operations.front();
  const std::shared_ptr<Operation> receive = channel.target.operations.front();
  const int64_t bytes = send->tensor.bytes();
  channel.copying = true;
  mutex_.Unlock();
  if (bytes > 0) {
    std::memcpy(receive->tensor.data(), send->tensor.data(), bytes);
  }
  mutex_.Lock();
  channel.copying = false;
  ++channel.delivered;
  // A send is done when its receiver has the message: the receive comes first.
  for (End* end : {&channel.target, &channel.source}) {
    Finish(*end->operations.front(), absl::OkStatus());
    end->operations.pop_front();
  }
}

void Exchange::DeliverDelayed() {
  while (true) {
    Calls calls;
    {
      MutexLock lock(&mutex_);
      const auto work = [this] {
        mutex_.AssertHeld();
        return stopped_ || !scheduled_.empty();
      };
      mutex_.Await(absl::Condition(&work));
      std::uniform_real_distribution<double> part(0.0, 1.0);
      const absl::Duration delay = options_.max_delay * part(random_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), delay)) return;
      const size_t index = random_() % scheduled_.size();
      Channel& channel = *scheduled_[index];
      scheduled_.erase(scheduled_.begin() + index);
      channel.scheduled = false;
      // It may have failed since it was scheduled.
      if (DeliverableLocked(channel)) DeliverLocked(channel, calls);
      PumpLocked(channel, calls);
    }
    RunCalls(calls);
  }
}

}  // namespace penstock::server::transport::inprocess
