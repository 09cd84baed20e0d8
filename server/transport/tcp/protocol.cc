#include "server/transport/tcp/protocol.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"

namespace penstock::server::transport::tcp {
namespace {

// Below this a frame about a message costs as much as the message.
constexpr size_t kSmallBytes = 16 << 10;

absl::Span<std::byte> Bytes(const device::Tensor& tensor) {
  return absl::MakeSpan(static_cast<std::byte*>(tensor.data()),
                        static_cast<size_t>(tensor.bytes()));
}

}  // namespace

void Protocol::Add(std::shared_ptr<Operation> operation) {
  operations_.push_back(std::move(operation));
}

void Protocol::FailAll(const absl::Status& status) {
  for (const auto& operation : operations_) Finish(*operation, status);
  operations_.clear();
}

void Protocol::CompleteFront() {
  const std::shared_ptr<Operation> operation = std::move(operations_.front());
  operations_.pop_front();
  Finish(*operation, absl::OkStatus(), arrival_);
}

std::optional<Outgoing> Protocol::NextGoodbye() {
  if (!goodbye_wanted_ || goodbye_started_ || !operations_.empty()) {
    return std::nullopt;
  }
  goodbye_started_ = true;
  return Outgoing{.header = EncodeFrame({.type = FrameType::kGoodbye})};
}

absl::Status Protocol::OnGoodbye() {
  peer_goodbye_ = true;
  if (!operations_.empty()) {
    return absl::UnavailableError("said goodbye while a message was pending");
  }
  return absl::OkStatus();
}

std::optional<Outgoing> SourceProtocol::Next() {
  const size_t index = started_ - received_;
  if (index < operations_.size() && operations_[index]->ready &&
      started_ < granted_) {
    const Operation& operation = *operations_[index];
    const absl::Span<std::byte> payload = Bytes(operation.tensor);
    const Frame frame{.type = FrameType::kMessage,
                      .tag = operation.tag,
                      .payload_bytes = payload.size(),
                      .form_digest = FormDigest(operation.tensor),
                      .number = static_cast<uint32_t>(started_)};
    ++started_;
    return Outgoing{.header = EncodeFrame(frame), .payload = payload};
  }
  return NextGoodbye();
}

void SourceProtocol::OnWritten() {
  if (goodbye_started_) {
    goodbye_written_ = true;
  } else {
    ++written_;
  }
}

absl::StatusOr<absl::Span<std::byte>> SourceProtocol::OnFrame(
    const Frame& frame) {
  if (peer_goodbye_) {
    return absl::DataLossError("sent a frame after its goodbye");
  }
  switch (frame.type) {
    case FrameType::kMessage:
      return absl::DataLossError("sent a message against the edge's direction");
    case FrameType::kGoodbye:
      if (const absl::Status status = OnGoodbye(); !status.ok()) return status;
      return absl::Span<std::byte>();
    case FrameType::kGrant:
      break;
  }
  // A message that is not written whole must not complete: its payload would be
  // read after its owner may have changed it.
  if (frame.granted < granted_ || frame.received < received_ ||
      frame.received > written_ || frame.received > frame.granted) {
    return absl::DataLossError(
        absl::StrCat("sent an impossible grant (", frame.granted, " granted, ",
                     frame.received, " received; before it ", granted_, " and ",
                     received_, ", of ", written_, " sent)"));
  }
  granted_ = frame.granted;
  while (received_ < frame.received) {
    ++received_;
    CompleteFront();
  }
  return absl::Span<std::byte>();
}

void SourceProtocol::OnPayload() {
  CHECK(false) << "a source receives no payload";
}

std::string SourceProtocol::Describe() const {
  if (started_ > written_ && operations_.size() > written_ - received_) {
    return absl::StrCat("in the middle of sending ",
                        ToString(operations_[written_ - received_]->tag));
  }
  if (!operations_.empty()) {
    return absl::StrCat("while ", ToString(operations_.front()->tag),
                        written_ > received_ ? " was sent but not yet received"
                                             : " waited to be sent");
  }
  return "while nothing was under way";
}

uint64_t TargetProtocol::Grantable() const {
  uint64_t granted = received_;
  for (const auto& operation : operations_) {
    if (!operation->ready) break;
    ++granted;
  }
  return granted;
}

Protocol::Urgency TargetProtocol::urgency() const {
  if (goodbye_wanted_ || peer_goodbye_) return Urgency::kNow;
  const uint64_t granted = Grantable();
  if (granted <= told_granted_ && received_ <= told_received_) {
    return Urgency::kNone;
  }
  const uint64_t left = told_granted_ - received_;
  const uint64_t posted = granted - received_;
  const uint64_t share = last_bytes_ < kSmallBytes ? 4 : 2;
  return posted > 0 && share * left <= posted ? Urgency::kNow
                                              : Urgency::kMayWait;
}

std::optional<Outgoing> TargetProtocol::Next() {
  const uint64_t granted = Grantable();
  if (granted > told_granted_ || received_ > told_received_) {
    told_granted_ = std::max(told_granted_, granted);
    told_received_ = received_;
    return Outgoing{.header = EncodeFrame({.type = FrameType::kGrant,
                                           .granted = told_granted_,
                                           .received = told_received_})};
  }
  return NextGoodbye();
}

void TargetProtocol::OnWritten() { goodbye_written_ = goodbye_started_; }

absl::Span<std::byte> TargetProtocol::Slot() const {
  if (told_granted_ <= received_ || operations_.empty()) return {};
  return Bytes(operations_.front()->tensor);
}

absl::StatusOr<absl::Span<std::byte>> TargetProtocol::OnFrame(
    const Frame& frame) {
  if (peer_goodbye_) {
    return absl::DataLossError("sent a frame after its goodbye");
  }
  switch (frame.type) {
    case FrameType::kGrant:
      return absl::DataLossError("sent a grant against the edge's direction");
    case FrameType::kGoodbye:
      if (const absl::Status status = OnGoodbye(); !status.ok()) return status;
      return absl::Span<std::byte>();
    case FrameType::kMessage:
      break;
  }
  if (told_granted_ <= received_ || operations_.empty()) {
    return absl::DataLossError("sent a message for which no slot is posted");
  }
  if (frame.number != static_cast<uint32_t>(received_)) {
    return absl::DataLossError(absl::StrCat("sent message number ",
                                            frame.number, " where ", received_,
                                            " is next"));
  }
  const Operation& operation = *operations_.front();
  if (frame.tag != operation.tag) {
    return absl::InternalError(absl::StrCat("received ", ToString(frame.tag),
                                            " where ", ToString(operation.tag),
                                            " was expected"));
  }
  const absl::Span<std::byte> slot = Bytes(operation.tensor);
  if (frame.form_digest != FormDigest(operation.tensor) ||
      frame.payload_bytes != slot.size()) {
    return absl::InternalError(absl::StrCat(
        ToString(operation.tag), ": received ", frame.payload_bytes,
        " bytes of another type or shape than the expected ",
        device::Name(operation.tensor.type()), " ",
        operation.tensor.shape().ToString()));
  }
  receiving_ = true;
  last_bytes_ = slot.size();
  return slot;
}

void TargetProtocol::OnPayload() {
  receiving_ = false;
  ++received_;
  CompleteFront();
}

std::string TargetProtocol::Describe() const {
  if (receiving_ && !operations_.empty()) {
    return absl::StrCat("in the middle of ",
                        ToString(operations_.front()->tag));
  }
  if (!operations_.empty()) {
    return absl::StrCat("while ", ToString(operations_.front()->tag),
                        " was awaited");
  }
  return "while nothing was under way";
}

}  // namespace penstock::server::transport::tcp
