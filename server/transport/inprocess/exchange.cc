#include "server/transport/inprocess/exchange.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"

namespace penstock::server::transport::inprocess {

using common::sync::MutexLock;

namespace {

void Finish(Operation& operation, const absl::Status& status) {
  if (operation.closed) return;
  operation.closed = true;
  operation.done->Signal(status);
}

}  // namespace

Exchange::Exchange(const HubOptions& options)
    : options_(options), random_(options.seed) {
  if (options.max_delay > absl::ZeroDuration()) {
    deliverer_ = std::thread([this] { DeliverDelayed(); });
  }
}

Exchange::~Exchange() { Stop(); }

void Exchange::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (deliverer_.joinable()) deliverer_.join();
}

absl::StatusOr<std::unique_ptr<Member>> Exchange::Join(
    const std::string& name, const TransportOptions& options) {
  if (name.empty()) return absl::InvalidArgumentError("a rank without a name");
  MutexLock lock(&mutex_);
  std::vector<std::pair<Channel*, EdgeOptions>> ends;
  for (const EdgeOptions& want : options.edges) {
    if (want.capacity < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          ToString(want.edge), ": capacity ", want.capacity, " is below 1"));
    }
    auto& channel = channels_[{options.epoch, want.edge}];
    if (channel == nullptr) {
      channel = std::make_unique<Channel>();
      channel->edge = want.edge;
    }
    const End& end =
        want.role == EdgeRole::kSource ? channel->source : channel->target;
    if (!end.name.empty()) {
      return absl::AlreadyExistsError(
          absl::StrCat(ToString(want.edge), " of epoch ", options.epoch,
                       ": this end is taken by ", end.name));
    }
    ends.emplace_back(channel.get(), want);
  }
  auto member = std::make_unique<Member>();
  member->name = name;
  for (const auto& [channel, want] : ends) {
    End& end =
        want.role == EdgeRole::kSource ? channel->source : channel->target;
    end.member = member.get();
    end.name = name;
    end.capacity = want.capacity;
    if (std::find(member->channels.begin(), member->channels.end(), channel) ==
        member->channels.end()) {
      member->channels.push_back(channel);
    }
  }
  return member;
}

void Exchange::Leave(Member& member) {
  Abort(member, absl::CancelledError("the transport was destroyed"));
  MutexLock lock(&mutex_);
  for (Channel* channel : member.channels) {
    for (End* end : {&channel->source, &channel->target}) {
      if (end->member == &member) end->member = nullptr;
    }
  }
  const auto called = [this, &member] {
    mutex_.AssertHeld();
    return member.callbacks == 0;
  };
  mutex_.Await(absl::Condition(&called));
}

absl::Status Exchange::Connect(Member& member, absl::Time deadline) {
  MutexLock lock(&mutex_);
  const auto missing = [this, &member] {
    mutex_.AssertHeld();
    std::vector<std::string> names;
    for (const Channel* channel : member.channels) {
      if (channel->source.name.empty() || channel->target.name.empty()) {
        names.push_back(ToString(channel->edge));
      }
    }
    return names;
  };
  const auto settled = [this, &member, &missing] {
    mutex_.AssertHeld();
    return !member.failure.status.ok() || missing().empty();
  };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
    member.failure.status = absl::DeadlineExceededError(
        absl::StrCat("no peer has joined on ", absl::StrJoin(missing(), ", ")));
    CloseOperationsLocked(member);
  }
  return member.failure.status;
}

Channel* Exchange::Find(int64_t epoch, const Edge& edge) {
  MutexLock lock(&mutex_);
  const auto found = channels_.find({epoch, edge});
  return found == channels_.end() ? nullptr : found->second.get();
}

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
  for (End* end : {&channel.source, &channel.target}) {
    ++end->stats.messages;
    end->stats.payload_bytes += bytes;
    Finish(*end->operations.front(), absl::OkStatus());
    end->operations.pop_front();
  }
}

void Exchange::FailLocked(Member* member, const Channel& channel,
                          const absl::Status& failure, Calls& calls) {
  if (member == nullptr || !member->failure.status.ok() || member->gone) return;
  member->failure = {.status = failure, .edge = channel.edge};
  if (member->on_failure) {
    ++member->callbacks;
    calls.push_back(member);
  }
  CloseOperationsLocked(*member);
}

void Exchange::CloseOperationsLocked(Member& member) {
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

Failure Exchange::failure(const Member& member) const {
  MutexLock lock(&mutex_);
  return member.failure;
}

void Exchange::SetOnFailure(Member& member,
                            std::function<void(const Failure&)> callback) {
  MutexLock lock(&mutex_);
  member.on_failure = std::move(callback);
}

void Exchange::Abort(Member& member, const absl::Status& cause) {
  CHECK(!cause.ok()) << "Abort needs a cause";
  Calls calls;
  {
    MutexLock lock(&mutex_);
    if (member.gone) return;
    member.gone = true;
    if (member.failure.status.ok()) member.failure.status = cause;
    CloseOperationsLocked(member);
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

absl::Status Exchange::Close(Member& member, absl::Time deadline) {
  Calls calls;
  absl::Status result;
  {
    MutexLock lock(&mutex_);
    for (Channel* channel : member.channels) {
      for (End* end : {&channel->source, &channel->target}) {
        CHECK(end->member != &member || end->operations.empty() ||
              !member.failure.status.ok())
            << ToString(channel->edge) << ": closed with messages pending";
      }
    }
    if (!member.failure.status.ok()) return member.failure.status;
    member.goodbye = true;
    // A peer that waits for this rank on an edge waits in vain.
    for (Channel* channel : member.channels) {
      for (End* end : {&channel->source, &channel->target}) {
        if (end->member == &member || end->operations.empty()) continue;
        FailLocked(end->member, *channel,
                   absl::UnavailableError(absl::StrCat(
                       ToString(channel->edge), ": peer ", member.name,
                       " said goodbye while a message was pending")),
                   calls);
      }
    }
    const auto waits_for = [this, &member] {
      mutex_.AssertHeld();
      std::vector<std::string> names;
      for (Channel* channel : member.channels) {
        for (End* end : {&channel->source, &channel->target}) {
          if (end->member != &member &&
              !(end->member != nullptr && end->member->goodbye)) {
            names.push_back(ToString(channel->edge));
          }
        }
      }
      return names;
    };
    const auto settled = [this, &member, &waits_for] {
      mutex_.AssertHeld();
      return !member.failure.status.ok() || waits_for().empty();
    };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
      result = absl::DeadlineExceededError(
          absl::StrCat("no goodbye on ", absl::StrJoin(waits_for(), ", ")));
    } else {
      result = member.failure.status;
    }
  }
  RunCalls(calls);
  return result;
}

EdgeStats Exchange::stats(const Channel& channel, const Member& member) const {
  MutexLock lock(&mutex_);
  return channel.target.member == &member ? channel.target.stats
                                          : channel.source.stats;
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
