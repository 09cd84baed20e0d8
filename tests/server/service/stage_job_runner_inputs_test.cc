// Files that the runner checks, probes and reads.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/stage_job_runner.h"
#include "tests/server/service/stage_job_runner_case.h"

namespace penstock::server::service {
namespace {

using ::testing::HasSubstr;

using StageJobRunnerInputsTest = StageJobRunnerCase;

TEST_F(StageJobRunnerInputsTest, AFailedCheckSaysWhichKeyIsToBlame) {
  v1::CheckInputs check = Check();
  check.mutable_data()->set_train_path(dir_.Path("missing"));
  runner_->CheckInputs(1, check);
  v1::InputsChecked checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.failed_key(), "data.train");
  EXPECT_EQ(checked.failure().reason(), "INPUT_NOT_VISIBLE");
  EXPECT_EQ(checked.failure().stage_name(), "stage-0");
  check = Check();
  check.set_model_path(dir_.Path("no-model"));
  runner_->CheckInputs(1, check);
  checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.failed_key(), "model.from");
  EXPECT_THAT(checked.failure().message(), HasSubstr("no-model"));
}

TEST_F(StageJobRunnerInputsTest, AProbeIsWrittenIntoAFolderThatIsThere) {
  v1::ProbeOutput probe;
  probe.set_directory(dir_.path());
  probe.set_file("probe-0");
  probe.set_contents("nonce");
  for (int again = 0; again < 2; ++again) {
    runner_->ProbeOutput(1, probe);
    const Reported probed = Next();
    ASSERT_TRUE(probed.message.has_output_probed());
    EXPECT_FALSE(probed.message.output_probed().has_failure());
    std::ifstream file(dir_.Path("probe-0"));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "nonce");
  }
  probe.set_directory(dir_.Path("elsewhere"));
  runner_->ProbeOutput(1, probe);
  const v1::Cause failure = Next().message.output_probed().failure();
  EXPECT_EQ(failure.reason(), "INPUT_NOT_VISIBLE");
  EXPECT_EQ(failure.stage_name(), "stage-0");
  EXPECT_THAT(failure.message(), HasSubstr("elsewhere/probe-0"));
}

// Lines of tokens decide length and vocabulary: the assignment says more of
// them than the check could.
TEST_F(StageJobRunnerInputsTest, DataWhoseLengthWasOpenAtTheCheckAreReadOnce) {
  std::string lines;
  for (int i = 0; i < 4; ++i) {
    lines += "{\"input_ids\":[1,2,3,4,5,6,7,8,100]}\n";
  }
  Write(lines);
  v1::CheckInputs check = Check();
  check.mutable_data()->set_format(v1::DataConfig::FORMAT_JSONL);
  check.mutable_data()->clear_sequence_length();
  check.mutable_model()->set_vocab(0);
  v1::Assignment assignment = AssignmentOf(1);
  assignment.mutable_data()->set_format(v1::DataConfig::FORMAT_JSONL);

  runner_->CheckInputs(1, check);
  const v1::InputsChecked checked = Next().message.inputs_checked();
  EXPECT_EQ(checked.train().sequence_length(), kSequenceLength);
  EXPECT_EQ(checked.train().largest_id(), 100);
  const int64_t read = runner_->heartbeat().progress();
  runner_->Assemble(1, assignment);
  const Reported ready = Next();
  ASSERT_TRUE(ready.message.has_ready()) << ready.message.DebugString();
  // Only the tensors were made.
  EXPECT_EQ(runner_->heartbeat().progress(),
            read + ready.message.ready().parameters_size());
  Abort(2, absl::OkStatus());
  Next();

  const auto refusal = [&](int64_t epoch, const v1::Assignment& wrong) {
    runner_->CheckInputs(epoch, check);
    Next();
    runner_->Assemble(epoch, wrong);
    const Reported failed = Next();
    EXPECT_TRUE(failed.message.has_failure()) << failed.message.DebugString();
    Abort(epoch + 1, absl::OkStatus());
    Next();
    return failed.message.failure().cause().message();
  };
  v1::Assignment wrong = assignment;
  wrong.mutable_data()->set_sequence_length(kSequenceLength - 1);
  EXPECT_THAT(refusal(3, wrong), HasSubstr("the assignment says 7"));
  wrong = assignment;
  wrong.mutable_model()->set_vocab(100);
  EXPECT_THAT(refusal(5, wrong),
              HasSubstr("the assignment says model.vocab 100"));
}

TEST_F(StageJobRunnerInputsTest, DataThatChangedBetweenTwoJobsAreReadAnew) {
  const std::string first = Fingerprint(1);
  const int64_t read = runner_->heartbeat().progress();
  // Within a job they are read once.
  EXPECT_EQ(Fingerprint(1), first);
  EXPECT_EQ(runner_->heartbeat().progress(), read);
  Abort(2, absl::OkStatus());
  Next();
  Write("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");  // Of the same size.
  EXPECT_NE(Fingerprint(2), first);
}

}  // namespace
}  // namespace penstock::server::service
