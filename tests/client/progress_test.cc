#include "client/progress.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace penstock::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::StepMetrics Step(int64_t step) {
  v1::StepMetrics metrics;
  metrics.set_step(step);
  metrics.set_loss(2.5);
  metrics.set_tokens_per_second(12345);
  return metrics;
}

class ProgressTest : public ::testing::Test {
 protected:
  Progress Make(Progress::Style style) {
    return Progress(
        style, clock_,
        [this](absl::string_view text) { out_ += std::string(text); },
        [this] { return columns_; });
  }
  static v1::Job Job() {
    v1::Job job;
    job.set_steps(100);
    return job;
  }
  tests::fakes::FakeClock clock_;
  std::string out_;
  int columns_ = 0;
};

TEST_F(ProgressTest, PlainIsALineEveryHalfMinuteAndTheLast) {
  Progress progress = Make(Progress::Style::kPlain);
  progress.OnJob(Job());
  progress.OnMetrics(Step(1));
  EXPECT_EQ(out_, "step 1/100  loss 2.5000  12.3k tokens/s\n");
  out_.clear();
  clock_.Advance(absl::Seconds(29));
  progress.OnMetrics(Step(50));
  EXPECT_EQ(out_, "");
  clock_.Advance(absl::Seconds(1));
  progress.OnMetrics(Step(51));
  EXPECT_EQ(out_, "step 51/100  loss 2.5000  12.3k tokens/s  ETA 30s\n");
  out_.clear();
  progress.OnMetrics(Step(100));
  EXPECT_THAT(out_, StartsWith("step 100/100"));
}

TEST_F(ProgressTest, TerminalRewritesOneLineAndKeepsMessages) {
  Progress progress = Make(Progress::Style::kTerminal);
  progress.OnJob(Job());
  progress.OnMetrics(Step(1));
  progress.Message("stage-1 ended");
  clock_.Advance(absl::Seconds(1));
  progress.OnMetrics(Step(2));
  progress.Finish();
  EXPECT_EQ(out_,
            "\r\x1b[Kstep 1/100  loss 2.5000  12.3k tokens/s"
            "\r\x1b[Kstage-1 ended\n"
            "\r\x1b[Kstep 2/100  loss 2.5000  12.3k tokens/s  ETA 1m38s\n");
}

TEST_F(ProgressTest, ALineIsCutToTheTerminalsWidth) {
  Progress progress = Make(Progress::Style::kTerminal);
  progress.OnJob(Job());
  columns_ = 20;
  progress.OnMetrics(Step(1));
  EXPECT_EQ(out_, "\r\x1b[Kstep 1/100  loss 2.");
  out_.clear();
  columns_ = 30;  // It was made wider.
  clock_.Advance(absl::Seconds(1));
  progress.OnMetrics(Step(2));
  EXPECT_EQ(out_, "\r\x1b[Kstep 2/100  loss 2.5000  12.3");
}

TEST_F(ProgressTest, BubbleAndValidationStayShownAfterTheirStep) {
  Progress progress = Make(Progress::Style::kTerminal);
  progress.OnJob(Job());
  v1::StepMetrics full = Step(1);
  full.set_bubble_rate(0.25);
  full.set_validation_loss(2.75);
  progress.OnMetrics(full);
  clock_.Advance(absl::Seconds(1));
  out_.clear();
  progress.OnMetrics(Step(2));
  EXPECT_THAT(out_, HasSubstr("bubble 25.0 %  validation 2.7500"));
}

TEST_F(ProgressTest, NoneIsSilentButForMessages) {
  Progress progress = Make(Progress::Style::kNone);
  progress.OnJob(Job());
  progress.OnMetrics(Step(1));
  EXPECT_EQ(out_, "");
  progress.Message("stage-1 ended");
  EXPECT_EQ(out_, "stage-1 ended\n");
}

TEST_F(ProgressTest, ALossThatIsNoNumberHasNoSign) {
  v1::StepMetrics metrics = Step(3);
  metrics.set_loss(-std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(ProgressLine(metrics, 9, absl::ZeroDuration()),
              HasSubstr("loss nan  "));
}

}  // namespace
}  // namespace penstock::client
