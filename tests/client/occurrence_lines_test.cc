#include "client/occurrence_lines.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::client {
namespace {

class OccurrenceLinesTest : public ::testing::Test {
 protected:
  void Add(v1::Occurrence::Severity severity, const std::string& message,
           bool consequence = false) {
    v1::Occurrence what;
    what.set_kind("KIND");
    what.set_severity(severity);
    what.set_message(message);
    what.set_consequence(consequence);
    lines_.Add(what, job_);
  }

  tests::fakes::FakeClock clock_;
  std::string out_;
  Progress progress_{
      Progress::Style::kPlain, clock_,
      [this](absl::string_view text) { out_ += std::string(text); },
      [] { return 0; }};
  OccurrenceLines lines_{progress_};
  v1::Job job_;
};

TEST_F(OccurrenceLinesTest, OfInformationOnlyTheWaitIsShown) {
  Add(v1::Occurrence::SEVERITY_INFO, "all is well");
  EXPECT_EQ(out_, "");
  v1::Occurrence wait;
  wait.set_kind("WAITING_FOR_STAGES");
  wait.set_severity(v1::Occurrence::SEVERITY_INFO);
  wait.set_message("2 of 4");
  lines_.Add(wait, job_);
  EXPECT_EQ(out_, "WAITING_FOR_STAGES: 2 of 4\n");
}

TEST_F(OccurrenceLinesTest, WhileTheJobRunsEachIsShownAtOnce) {
  job_.mutable_start_time();
  Add(v1::Occurrence::SEVERITY_WARNING, "slow\x1b[2J");
  Add(v1::Occurrence::SEVERITY_ERROR, "lost");
  Add(v1::Occurrence::SEVERITY_ERROR, "broken", /*consequence=*/true);
  EXPECT_EQ(out_, "KIND: slow[2J\nKIND: lost\n  (consequence) KIND: broken\n");
}

TEST_F(OccurrenceLinesTest, TheCauseOfARefusalIsNotSaidTwice) {
  Add(v1::Occurrence::SEVERITY_ERROR, "no such file");
  Add(v1::Occurrence::SEVERITY_ERROR, "no such folder");
  Add(v1::Occurrence::SEVERITY_ERROR, "dropped", /*consequence=*/true);
  EXPECT_EQ(out_, "  (consequence) KIND: dropped\n");
  out_.clear();
  // The cause may say more than the event did.
  job_.mutable_cause()->set_message("no such file: job.yaml:3:1");
  lines_.End(job_);
  EXPECT_EQ(out_, "KIND: no such folder\n");
}

}  // namespace
}  // namespace penstock::client
