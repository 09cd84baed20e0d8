// Every field of the wire contract says what it is: its unit, and what it means
// where it is not set.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"

namespace penstock::tests::proto {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The files of a descriptor set that protoc wrote, with their comments.
class Sources {
 public:
  // `variable` names it in the environment (CMakeLists.txt).
  explicit Sources(const char* variable) {
    std::ifstream file(std::getenv(variable), std::ios::binary);
    EXPECT_TRUE(files_.ParseFromIstream(&file)) << variable;
    for (const auto& each : files_.file()) {
      EXPECT_NE(pool_.BuildFile(each), nullptr) << each.name();
    }
  }
  // Those whose name begins with `folder`.
  std::vector<const FileDescriptor*> Below(absl::string_view folder) const {
    std::vector<const FileDescriptor*> found;
    for (const auto& each : files_.file()) {
      if (!absl::StartsWith(each.name(), folder)) continue;
      found.push_back(pool_.FindFileByName(each.name()));
    }
    return found;
  }

 private:
  google::protobuf::FileDescriptorSet files_;
  google::protobuf::DescriptorPool pool_;
};

bool HasComment(const FieldDescriptor& field) {
  google::protobuf::SourceLocation place;
  if (!field.GetSourceLocation(&place)) return false;
  return !absl::StripAsciiWhitespace(
              absl::StrCat(place.leading_comments, place.trailing_comments))
              .empty();
}

void AddUncommented(const Descriptor& message,
                    std::vector<std::string>& fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    if (!HasComment(*message.field(i))) {
      fields.push_back(message.field(i)->full_name());
    }
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    AddUncommented(*message.nested_type(i), fields);
  }
}

std::vector<std::string> UncommentedFields(const FileDescriptor& file) {
  std::vector<std::string> fields;
  for (int i = 0; i < file.message_type_count(); ++i) {
    AddUncommented(*file.message_type(i), fields);
  }
  return fields;
}

// Values of an enum share one scope with its neighbours: each begins with the
// enum's name, as STEP_KIND_ of StepKind.
void AddUnprefixed(const EnumDescriptor& of, std::vector<std::string>& values) {
  std::string prefix;
  for (const char c : of.name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(c);
  }
  for (int i = 0; i < of.value_count(); ++i) {
    if (!absl::StartsWith(of.value(i)->name(), prefix + "_")) {
      values.push_back(of.value(i)->full_name());
    }
  }
}

void AddUnprefixed(const Descriptor& message,
                   std::vector<std::string>& values) {
  for (int i = 0; i < message.enum_type_count(); ++i) {
    AddUnprefixed(*message.enum_type(i), values);
  }
  for (int i = 0; i < message.nested_type_count(); ++i) {
    AddUnprefixed(*message.nested_type(i), values);
  }
}

TEST(EnumsTest, EveryValueBeginsWithTheNameOfItsEnum) {
  const Sources sources("PENSTOCK_CONTRACT");
  std::vector<std::string> values;
  for (const FileDescriptor* file : sources.Below("penstock/v1/")) {
    for (int i = 0; i < file->enum_type_count(); ++i) {
      AddUnprefixed(*file->enum_type(i), values);
    }
    for (int i = 0; i < file->message_type_count(); ++i) {
      AddUnprefixed(*file->message_type(i), values);
    }
  }
  EXPECT_THAT(values, IsEmpty());
}

TEST(CommentsTest, EveryFieldOfTheContractHasItsOwn) {
  const Sources sources("PENSTOCK_CONTRACT");
  const auto files = sources.Below("penstock/v1/");
  EXPECT_GE(files.size(), 7u);
  for (const FileDescriptor* file : files) {
    EXPECT_THAT(UncommentedFields(*file), IsEmpty()) << file->name();
  }
}

TEST(CommentsTest, AFieldWithoutAnyIsFoundWhereverItIs) {
  const Sources sources("PENSTOCK_UNCOMMENTED");
  const auto files = sources.Below("uncommented.proto");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(UncommentedFields(*files[0]),
              ElementsAre("penstock.tests.A.bare", "penstock.tests.A.choice",
                          "penstock.tests.A.B.inner"));
}

}  // namespace
}  // namespace penstock::tests::proto
