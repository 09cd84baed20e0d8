#include "server/transport/inprocess/exchange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"

namespace penstock::server::transport::inprocess {

using common::sync::MutexLock;

std::unique_ptr<device::HostEvent> NewEvent(const common::time::Clock* clock) {
  if (clock == nullptr) return std::make_unique<device::HostEvent>();
  return std::make_unique<device::HostEvent>(*clock);
}

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
  member->ended = NewEvent(options_.clock);
  member->ended->Reset();
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
  const auto settled = [this, &member] {
    mutex_.AssertHeld();
    return !member.failure.status.ok() || UnconnectedLocked(member).empty();
  };
  if (!mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)) {
    std::vector<std::string> missing;
    for (const Edge& edge : UnconnectedLocked(member)) {
      missing.push_back(ToString(edge));
    }
    member.failure.status = absl::DeadlineExceededError(
        absl::StrCat("no peer has joined on ", absl::StrJoin(missing, ", ")));
    EndMemberLocked(member);
  }
  return member.failure.status;
}

std::vector<Edge> Exchange::Unconnected(const Member& member) const {
  MutexLock lock(&mutex_);
  return UnconnectedLocked(member);
}

std::vector<Edge> Exchange::UnconnectedLocked(const Member& member) const {
  std::vector<Edge> edges;
  for (const Channel* channel : member.channels) {
    if (channel->source.name.empty() || channel->target.name.empty()) {
      edges.push_back(channel->edge);
    }
  }
  return edges;
}

Channel* Exchange::Find(int64_t epoch, const Edge& edge) {
  MutexLock lock(&mutex_);
  const auto found = channels_.find({epoch, edge});
  return found == channels_.end() ? nullptr : found->second.get();
}

Failure Exchange::failure(const Member& member) const {
  MutexLock lock(&mutex_);
  return member.failure;
}

void Exchange::SetOnFailure(Member& member,
                            std::function<void(const Failure&)> callback) {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    member.on_failure = std::move(callback);
    if (member.failure.edge.has_value()) TellFailureLocked(member, calls);
  }
  RunCalls(calls);
}

absl::Status Exchange::Close(Member& member, absl::Time deadline) {
  Calls calls;
  absl::Status result;
  {
    MutexLock lock(&mutex_);
    for (Channel* channel : member.channels) {
      CHECK(channel->target.member != &member ||
            channel->target.operations.empty() || !member.failure.status.ok())
          << ToString(channel->edge) << ": closed with a receive pending";
    }
    const auto sent = [this, &member] {
      mutex_.AssertHeld();
      return !member.failure.status.ok() || UnsentLocked(member).empty();
    };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&sent), deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("a message was not received on ",
                       absl::StrJoin(UnsentLocked(member), ", ")));
    }
    if (!member.failure.status.ok()) return member.failure.status;
    SayGoodbyeLocked(member, calls);
    const auto settled = [this, &member] {
      mutex_.AssertHeld();
      return !member.failure.status.ok() || OpenLocked(member).empty();
    };
    result =
        mutex_.AwaitWithDeadline(absl::Condition(&settled), deadline)
            ? member.failure.status
            : absl::DeadlineExceededError(absl::StrCat(
                  "no goodbye on ", absl::StrJoin(OpenLocked(member), ", ")));
  }
  RunCalls(calls);
  return result;
}

std::vector<std::string> Exchange::UnsentLocked(const Member& member) const {
  std::vector<std::string> names;
  for (const Channel* channel : member.channels) {
    if (channel->source.member == &member &&
        !channel->source.operations.empty()) {
      names.push_back(ToString(channel->edge));
    }
  }
  return names;
}

std::vector<std::string> Exchange::OpenLocked(const Member& member) const {
  std::vector<std::string> names;
  for (const Channel* channel : member.channels) {
    for (const End* end : {&channel->source, &channel->target}) {
      if (end->member != &member &&
          !(end->member != nullptr && end->member->goodbye)) {
        names.push_back(ToString(channel->edge));
      }
    }
  }
  return names;
}

void Exchange::SayGoodbyeLocked(Member& member, Calls& calls) {
  member.goodbye = true;
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
}

}  // namespace penstock::server::transport::inprocess
