// The wire contract against the golden one in tests/testdata/proto. An
// addition: PENSTOCK_REGENERATE_GOLDEN=1 with this test, and commit the file. A
// break is refused even then.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "penstock/v1/coordination_service.pb.h"
#include "penstock/v1/job_service.pb.h"
#include "penstock/v1/plan_service.pb.h"
#include "penstock/v1/stage_monitor_service.pb.h"
#include "penstock/v1/stage_service.pb.h"
#include "tests/proto/wire_compatibility.h"

namespace penstock::tests::proto {
namespace {

using google::protobuf::FileDescriptorSet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string GoldenPath() {
  return std::string(std::getenv("PENSTOCK_TEST_DATA")) +
         "/penstock_v1.descriptors.txt";
}

FileDescriptorSet Current() {
  FileDescriptorSet files;
  for (const auto* file :
       {v1::Cause::descriptor()->file(), v1::ModelConfig::descriptor()->file(),
        v1::Hello::descriptor()->file(), v1::Job::descriptor()->file(),
        v1::SimulateScheduleRequest::descriptor()->file(),
        v1::Stage::descriptor()->file(),
        v1::StageStatus::descriptor()->file()}) {
    file->CopyTo(files.add_file());
  }
  return files;
}

FileDescriptorSet Golden() {
  std::ifstream file(GoldenPath());
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  FileDescriptorSet golden;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &golden));
  return golden;
}

std::string Text(const FileDescriptorSet& files) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(files, &text);
  return text;
}

TEST(WireContractTest, NothingThatOldPeersUseHasChanged) {
  EXPECT_THAT(WireBreaks(Golden(), Current()), IsEmpty());
}

TEST(WireContractTest, GoldenDescriptorsAreUpToDate) {
  if (std::getenv("PENSTOCK_REGENERATE_GOLDEN") != nullptr &&
      WireBreaks(Golden(), Current()).empty()) {
    std::ofstream(GoldenPath()) << Text(Current());
  }
  EXPECT_EQ(Text(Golden()), Text(Current()))
      << "an addition: run this test with PENSTOCK_REGENERATE_GOLDEN=1";
}

// The checks themselves, on a contract that is broken on purpose.
TEST(WireBreaksTest, FindsEachKindOfBreak) {
  const FileDescriptorSet before = Current();
  FileDescriptorSet after = before;
  for (auto& file : *after.mutable_file()) {
    for (auto& message : *file.mutable_message_type()) {
      if (message.name() == "Cause") {
        message.mutable_field(0)->set_number(77);
        message.mutable_field(1)->set_name("text");
      } else if (message.name() == "ProtocolRange") {
        message.mutable_field(0)->set_type(
            google::protobuf::FieldDescriptorProto::TYPE_INT64);
      }
    }
    for (auto& each : *file.mutable_enum_type()) {
      if (each.name() == "Op") each.mutable_value(1)->set_number(9);
    }
    if (file.service_size() > 0 && file.service(0).name() == "JobService") {
      file.mutable_service(0)->mutable_method()->RemoveLast();
    }
  }
  EXPECT_THAT(WireBreaks(before, after),
              ElementsAre(HasSubstr("Cause.code: number 1 was removed"),
                          HasSubstr("Cause.message: became text"),
                          HasSubstr("ProtocolRange.lowest: its type"),
                          HasSubstr("Op.OP_FORWARD: was removed or renumb"),
                          HasSubstr("JobService.WatchJob: was removed")));
}

TEST(WireBreaksTest, AReservedNumberMayGo) {
  const FileDescriptorSet before = Current();
  FileDescriptorSet after = before;
  auto& cause = *after.mutable_file(0)->mutable_message_type(0);
  ASSERT_EQ(cause.name(), "Cause");
  cause.mutable_field()->RemoveLast();
  auto& range = *cause.add_reserved_range();
  range.set_start(4);
  range.set_end(5);
  EXPECT_THAT(WireBreaks(before, after), IsEmpty());
}

}  // namespace
}  // namespace penstock::tests::proto
