#include "server/transport/tcp/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace penstock::server::transport::tcp {

using common::sync::MutexLock;

namespace {

// What one round moves each way, so that an edge with much to move leaves the
// loop thread to the others soon.
constexpr size_t kRoundBytes = 1 << 20;
// What a sending thread writes itself; the rest is left to whoever finds the
// socket writable, so that the engine can go on computing.
constexpr size_t kInlineBytes = 256 << 10;

std::unique_ptr<Protocol> MakeProtocol(EdgeRole role) {
  if (role == EdgeRole::kSource) return std::make_unique<SourceProtocol>();
  return std::make_unique<TargetProtocol>();
}

std::string ErrorText(int error) {
  return std::generic_category().message(error);
}

}  // namespace

Connection::Connection(const EdgeOptions& options, const Deps& deps)
    : options_(options),
      deps_(deps),
      protocol_(MakeProtocol(options.role)),
      reader_(*protocol_),
      writer_(*protocol_) {}

std::string Connection::WhoLocked() const {
  return absl::StrCat(ToString(options_.edge), ": peer ", options_.peer, " (",
                      address_.empty() ? options_.peer_address : address_, ")");
}

void Connection::Tell(const News& news) {
  if (!news.failure.ok()) {
    deps_.owner.OnBroken({.status = news.failure, .edge = options_.edge});
  }
  if (news.closed) deps_.owner.OnClosed();
}

void Connection::Attach(Fd socket) {
  News news;
  {
    MutexLock lock(&mutex_);
    if (state_ != State::kConnecting) return;
    socket_ = std::move(socket);
    address_ = PeerAddress(socket_);
    state_ = State::kOpen;
    standing_ = true;
    epoll_event event{.events = EPOLLIN, .data = {.u32 = deps_.index}};
    if (epoll_ctl(deps_.epoll_fd, EPOLL_CTL_ADD, socket_.get(), &event) != 0) {
      news = BreakLocked(SocketError("epoll_ctl", errno));
    } else {
      registered_ = true;
      interest_ = EPOLLIN;
      news = WriteAndSettleLocked(kRoundBytes);
    }
  }
  Tell(news);
}

void Connection::Begin(const std::shared_ptr<Operation>& operation) {
  News news;
  {
    MutexLock lock(&mutex_);
    if (state_ == State::kFailed) return Finish(*operation, failure_);
    if (protocol_->goodbye_wanted()) {
      return Finish(*operation, absl::FailedPreconditionError(absl::StrCat(
                                    ToString(options_.edge), ": closed")));
    }
    if (options_.role == EdgeRole::kTarget) {
      CHECK_LT(static_cast<int>(protocol_->pending()), options_.capacity)
          << ToString(options_.edge) << ": more receives than its capacity";
    }
    protocol_->Add(operation);
    if (protocol_->peer_goodbye()) {
      news = BreakLocked(
          absl::UnavailableError("said goodbye while a message was pending"));
    }
  }
  Tell(news);
}

bool Connection::Ready(const std::shared_ptr<Operation>& operation,
                       const absl::Status& stream) {
  News news;
  {
    MutexLock lock(&mutex_);
    if (operation->closed || state_ == State::kFailed) return false;
    if (!stream.ok()) {
      news = BreakLocked(absl::Status(
          stream.code(),
          absl::StrCat(ToString(operation->tag),
                       ": the stream before it failed: ", stream.message())));
    } else {
      operation->ready = true;
      if (state_ == State::kOpen) {
        news = WriteOrOweLocked(Acks::kDelayed, kInlineBytes);
      }
    }
  }
  Tell(news);
  return news.owes;
}

bool Connection::OnEvents(Acks acks, common::time::MonotonicTime since) {
  News news;
  {
    MutexLock lock(&mutex_);
    if (state_ != State::kOpen) return false;
    if (const absl::Status read = ReadLocked(kRoundBytes, since); !read.ok()) {
      news = BreakLocked(read);
    } else {
      news = WriteOrOweLocked(acks, kRoundBytes);
    }
  }
  Tell(news);
  return news.owes;
}

void Connection::Flush() {
  News news;
  {
    MutexLock lock(&mutex_);
    if (state_ != State::kOpen) return;
    news = WriteAndSettleLocked(kRoundBytes);
  }
  Tell(news);
}

void Connection::SayGoodbye() {
  News news;
  {
    MutexLock lock(&mutex_);
    protocol_->SayGoodbye();
    if (state_ == State::kOpen) news = WriteAndSettleLocked(kRoundBytes);
  }
  Tell(news);
}

void Connection::Fail(const absl::Status& failure) {
  MutexLock lock(&mutex_);
  if (state_ == State::kClosed) return;
  state_ = State::kFailed;
  if (earlier_failure_.ok()) earlier_failure_ = std::move(failure_);
  failure_ = failure;
  protocol_->FailAll(failure);
  UnregisterLocked();
}

void Connection::Cut() {
  MutexLock lock(&mutex_);
  UnregisterLocked();
  if (!socket_.open()) return;
  // The peer hears of it also when a process that was forked holds a copy.
  shutdown(socket_.get(), SHUT_RDWR);
  socket_.Reset();
}

bool Connection::standing() const {
  MutexLock lock(&mutex_);
  return standing_;
}

bool Connection::connecting() const {
  MutexLock lock(&mutex_);
  return state_ == State::kConnecting;
}

bool Connection::closed() const {
  MutexLock lock(&mutex_);
  return state_ == State::kClosed;
}

size_t Connection::pending() const {
  MutexLock lock(&mutex_);
  return protocol_->pending();
}

void Connection::NoteProblem(const absl::Status& problem) {
  MutexLock lock(&mutex_);
  problem_ = problem;
}

std::string Connection::Problem() const {
  MutexLock lock(&mutex_);
  if (!problem_.ok()) {
    return absl::StrCat(WhoLocked(), ": ", problem_.message());
  }
  return absl::StrCat(WhoLocked(), options_.role == EdgeRole::kTarget
                                       ? ": has not dialled"
                                       : ": no answer");
}

Connection::News Connection::WriteOrOweLocked(Acks acks, size_t budget) {
  const Protocol::Urgency urgency = protocol_->urgency();
  if (writer_.midway() || urgency == Protocol::Urgency::kNow ||
      (acks == Acks::kImmediate && urgency == Protocol::Urgency::kMayWait)) {
    return WriteAndSettleLocked(budget);
  }
  return {.owes = urgency == Protocol::Urgency::kMayWait};
}

Connection::News Connection::WriteAndSettleLocked(size_t budget) {
  const absl::Status written = WriteLocked(budget);
  if (!written.ok()) return BreakLocked(written);
  if (protocol_->closed()) {
    state_ = State::kClosed;
    UnregisterLocked();
    return {.closed = !std::exchange(told_closed_, true)};
  }
  UpdateInterestLocked();
  return {};
}

absl::Status Connection::ReadLocked(size_t budget,
                                    common::time::MonotonicTime since) {
  protocol_->NoteArrival(since);
  while (!protocol_->closed()) {
    const ByteParts parts = reader_.Space(budget);
    const ssize_t got = readv(socket_.get(), parts.list, parts.count);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
      return LostLocked(
          absl::StrCat("the connection broke (", ErrorText(errno), ")"));
    }
    if (got == 0) return LostLocked("closed the connection without goodbye");
    RETURN_IF_ERROR(reader_.Came(static_cast<size_t>(got)));
    // A short read has emptied the socket; epoll tells of what comes later.
    if (static_cast<size_t>(got) < parts.bytes) return absl::OkStatus();
    if (static_cast<size_t>(got) >= budget) return absl::OkStatus();
    budget -= got;
    protocol_->NoteArrival(std::nullopt);  // The rest came meanwhile.
  }
  return absl::OkStatus();
}

absl::Status Connection::WriteLocked(size_t budget) {
  wants_to_write_ = false;
  while (writer_.Begin()) {
    if (budget == 0) {
      wants_to_write_ = true;
      break;
    }
    ByteParts parts = writer_.Left(budget);
    msghdr message{};
    message.msg_iov = parts.list;
    message.msg_iovlen = parts.count;
    const ssize_t sent =
        sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        wants_to_write_ = true;
        break;
      }
      return LostLocked(
          absl::StrCat("the connection broke (", ErrorText(errno), ")"));
    }
    budget -= std::min(writer_.Wrote(static_cast<size_t>(sent)), budget);
  }
  return absl::OkStatus();
}

absl::Status Connection::LostLocked(absl::string_view how) const {
  std::string what = absl::StrCat(how, " ", protocol_->Describe());
  if (const size_t missing = reader_.missing(); missing > 0) {
    absl::StrAppend(&what, " (", missing, " bytes were missing)");
  }
  return absl::UnavailableError(what);
}

Connection::News Connection::BreakLocked(const absl::Status& what) {
  UnregisterLocked();
  if (absl::IsUnavailable(what) && protocol_->peer_goodbye() &&
      protocol_->pending() == 0) {
    // The peer has left after its goodbye without waiting for ours.
    state_ = State::kClosed;
    return {.closed = !std::exchange(told_closed_, true)};
  }
  state_ = State::kFailed;
  failure_ = absl::Status(what.code(),
                          absl::StrCat(WhoLocked(), ": ", what.message()));
  if (socket_.open()) shutdown(socket_.get(), SHUT_RDWR);
  return {.failure = failure_};
}

void Connection::UnregisterLocked() {
  if (!registered_) return;
  registered_ = false;
  epoll_ctl(deps_.epoll_fd, EPOLL_CTL_DEL, socket_.get(), nullptr);
}

void Connection::UpdateInterestLocked() {
  if (!registered_) return;
  const uint32_t wanted = EPOLLIN | (wants_to_write_ ? EPOLLOUT : 0u);
  if (wanted == interest_) return;
  interest_ = wanted;
  epoll_event event{.events = wanted, .data = {.u32 = deps_.index}};
  CHECK_EQ(epoll_ctl(deps_.epoll_fd, EPOLL_CTL_MOD, socket_.get(), &event), 0);
}

}  // namespace penstock::server::transport::tcp
