#include "tests/proto/wire_compatibility.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace penstock::tests::proto {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::EnumDescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorSet;
using google::protobuf::ServiceDescriptorProto;

// Everything with a full name, whatever the file it is in.
struct Contract {
  std::map<std::string, const DescriptorProto*> messages;
  std::map<std::string, const EnumDescriptorProto*> enums;
  std::map<std::string, const ServiceDescriptorProto*> services;
};

void Collect(const std::string& scope, const DescriptorProto& message,
             Contract& out) {
  const std::string name = absl::StrCat(scope, ".", message.name());
  out.messages[name] = &message;
  for (const auto& nested : message.nested_type()) Collect(name, nested, out);
  for (const auto& nested : message.enum_type()) {
    out.enums[absl::StrCat(name, ".", nested.name())] = &nested;
  }
}

Contract Collect(const FileDescriptorSet& files) {
  Contract out;
  for (const auto& file : files.file()) {
    for (const auto& message : file.message_type()) {
      Collect(file.package(), message, out);
    }
    for (const auto& each : file.enum_type()) {
      out.enums[absl::StrCat(file.package(), ".", each.name())] = &each;
    }
    for (const auto& service : file.service()) {
      out.services[absl::StrCat(file.package(), ".", service.name())] =
          &service;
    }
  }
  return out;
}

const FieldDescriptorProto* FieldNumber(const DescriptorProto& message,
                                        int number) {
  for (const auto& field : message.field()) {
    if (field.number() == number) return &field;
  }
  return nullptr;
}

bool IsReserved(const DescriptorProto& message, int number) {
  for (const auto& range : message.reserved_range()) {
    if (range.start() <= number && number < range.end()) return true;
  }
  return false;
}

void CompareMessages(const std::string& name, const DescriptorProto& before,
                     const DescriptorProto& after,
                     std::vector<std::string>& breaks) {
  for (const auto& field : before.field()) {
    const std::string where = absl::StrCat(name, ".", field.name());
    const FieldDescriptorProto* now = FieldNumber(after, field.number());
    if (now == nullptr) {
      if (!IsReserved(after, field.number())) {
        breaks.push_back(absl::StrCat(where, ": number ", field.number(),
                                      " was removed and is not reserved"));
      }
    } else if (now->name() != field.name()) {
      breaks.push_back(
          absl::StrCat(where, ": became ", now->name(), " (JSON breaks)"));
    } else if (now->type() != field.type() ||
               now->type_name() != field.type_name()) {
      breaks.push_back(absl::StrCat(where, ": its type changed"));
    } else if (now->label() != field.label() ||
               now->proto3_optional() != field.proto3_optional()) {
      breaks.push_back(absl::StrCat(where, ": repeated or optional changed"));
    }
  }
}

void CompareEnums(const std::string& name, const EnumDescriptorProto& before,
                  const EnumDescriptorProto& after,
                  std::vector<std::string>& breaks) {
  std::map<std::string, int> now;
  for (const auto& value : after.value()) now[value.name()] = value.number();
  for (const auto& value : before.value()) {
    const auto it = now.find(value.name());
    if (it == now.end() || it->second != value.number()) {
      breaks.push_back(
          absl::StrCat(name, ".", value.name(), ": was removed or renumbered"));
    }
  }
}

void CompareServices(const std::string& name,
                     const ServiceDescriptorProto& before,
                     const ServiceDescriptorProto& after,
                     std::vector<std::string>& breaks) {
  std::map<std::string, std::string> now;
  for (const auto& method : after.method()) {
    now[method.name()] = method.SerializeAsString();
  }
  for (const auto& method : before.method()) {
    const auto it = now.find(method.name());
    if (it == now.end() || it->second != method.SerializeAsString()) {
      breaks.push_back(absl::StrCat(name, ".", method.name(),
                                    ": was removed or has other types"));
    }
  }
}

// Calls `compare` for names in both, and notes those that are gone.
template <typename T, typename Compare>
void CompareAll(const std::map<std::string, const T*>& before,
                const std::map<std::string, const T*>& after, Compare compare,
                std::vector<std::string>& breaks) {
  for (const auto& [name, old] : before) {
    const auto it = after.find(name);
    if (it == after.end()) {
      breaks.push_back(absl::StrCat(name, ": was removed"));
    } else {
      compare(name, *old, *it->second, breaks);
    }
  }
}

}  // namespace

std::vector<std::string> WireBreaks(const FileDescriptorSet& before,
                                    const FileDescriptorSet& after) {
  const Contract old = Collect(before);
  const Contract now = Collect(after);
  std::vector<std::string> breaks;
  CompareAll(old.messages, now.messages, CompareMessages, breaks);
  CompareAll(old.enums, now.enums, CompareEnums, breaks);
  CompareAll(old.services, now.services, CompareServices, breaks);
  return breaks;
}

}  // namespace penstock::tests::proto
