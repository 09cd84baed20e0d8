#include "common/rpc/message_limit.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::common::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// About what the field takes; numbers count as 8 bytes each.
int64_t FieldBytes(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int count =
      field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  int64_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    std::string scratch;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        bytes += (field.is_repeated()
                      ? reflection.GetRepeatedMessage(message, &field, i)
                      : reflection.GetMessage(message, &field))
                     .ByteSizeLong();
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        bytes += (field.is_repeated() ? reflection.GetRepeatedStringReference(
                                            message, &field, i, &scratch)
                                      : reflection.GetStringReference(
                                            message, &field, &scratch))
                     .size();
        break;
      default:
        bytes += 8;
    }
  }
  return bytes;
}

// The path to the field that takes most, through messages that hold it.
std::string LargestField(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  const FieldDescriptor* largest = nullptr;
  int64_t most = -1;
  for (const FieldDescriptor* field : fields) {
    const int64_t bytes = FieldBytes(message, *field);
    if (bytes <= most) continue;
    most = bytes;
    largest = field;
  }
  if (largest == nullptr) return "";
  const std::string name = absl::StrCat(".", largest->name());
  if (largest->is_repeated() ||
      largest->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return name;
  }
  return absl::StrCat(name, LargestField(message.GetReflection()->GetMessage(
                                message, largest)));
}

}  // namespace

absl::Status CheckMessageSize(const Message& message, int64_t limit) {
  const auto bytes = static_cast<int64_t>(message.ByteSizeLong());
  if (bytes <= limit) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "a ", message.GetDescriptor()->name(), " takes ", bytes,
      " bytes, most of them in ", message.GetDescriptor()->name(),
      LargestField(message), "; the limit of a control message is ", limit));
}

}  // namespace penstock::common::rpc
