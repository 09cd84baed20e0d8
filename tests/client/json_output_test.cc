#include "client/json_output.h"

#include "gtest/gtest.h"
#include "penstock/v1/job_service.pb.h"
#include "penstock/v1/stage_service.pb.h"

namespace penstock::client {
namespace {

TEST(JsonOutputTest, FollowsTheDocumentedRules) {
  v1::Stage stage;
  stage.set_name("stage-0");
  stage.set_state(v1::Stage::STATE_RUNNING);
  stage.mutable_device()->set_memory_bytes(int64_t{1} << 40);
  stage.mutable_last_contact()->set_nanos(250'000'000);
  const auto json = ToJson(stage);
  EXPECT_EQ(json["name"], "stage-0");
  EXPECT_EQ(json["state"], "RUNNING");       // No prefix.
  EXPECT_EQ(json["device"]["memory_bytes"],  // A number, snake_case.
            int64_t{1} << 40);
  EXPECT_EQ(json["host"], "");           // Unset, printed.
  EXPECT_TRUE(json["cause"].is_null());  // Unset message.
  EXPECT_EQ(json["last_contact"], "0.25s");
}

TEST(JsonOutputTest, EnumPrefixOfSeveralWordsIsDropped) {
  v1::Job job;
  job.set_reason(v1::Job::STATE_REASON_STAGE_LOST);
  job.mutable_create_time()->set_seconds(0);
  const auto json = ToJson(job);
  EXPECT_EQ(json["reason"], "STAGE_LOST");
  EXPECT_EQ(json["create_time"], "1970-01-01T00:00:00Z");
}

TEST(JsonOutputTest, AWordOfALaterVersionIsItsNumber) {
  EXPECT_EQ(EnumWord(v1::Job::STATE_REASON_STAGE_LOST), "STAGE_LOST");
  EXPECT_EQ(EnumWord(v1::Stage::STATE_RUNNING), "RUNNING");
  EXPECT_EQ(EnumWord(static_cast<v1::Job::State>(1234)), "1234");
}

TEST(JsonOutputTest, RemoteTextCannotSteerTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mred\x07\nb\tc\x7f\rd"), "a[31mred\nb\tcd");
  // U+009B begins a command too; U+00A0 and a torn sequence do not.
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "2J\xc2\xa0\xc2"),
            "a2J\xc2\xa0\xc2");
  v1::Stage stage;
  stage.set_name("x\x1b[2J");
  EXPECT_EQ(ToJson(stage)["name"], "x[2J");
}

TEST(JsonOutputTest, YamlQuotesWhatItWouldReadOtherwise) {
  const nlohmann::ordered_json json = {
      {"name", "stage-0"},
      {"yes", "true"},
      {"empty", ""},
      {"number", 3},
      {"none", nullptr},
      {"list", {{{"a", 1}, {"b", "x y"}}, {{"a", 2}}}},
      {"nothing", nlohmann::ordered_json::array()}};
  EXPECT_EQ(ToYaml(json),
            "name: stage-0\n"
            "yes: \"true\"\n"
            "empty: \"\"\n"
            "number: 3\n"
            "none: null\n"
            "list:\n"
            "  - a: 1\n"
            "    b: \"x y\"\n"
            "  - a: 2\n"
            "nothing: []\n");
}

}  // namespace
}  // namespace penstock::client
