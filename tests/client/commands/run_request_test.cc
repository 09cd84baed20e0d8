#include "client/commands/run_request.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::client::commands {
namespace {

using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunRequestTest : public ::testing::Test {
 protected:
  RunRequestTest() {
    environment_.working_directory = dir_.path();
    flags_.job_file = dir_.Write("jobs/tiny.yaml", "name: tiny\n");
  }

  tests::fakes::TempDir dir_;
  tests::fakes::FakeClock clock_;
  Environment environment_{.clock = clock_};
  RunFlags flags_;
};

TEST_F(RunRequestTest, HoldsTheFileAndWhereItsPathsStart) {
  flags_.overrides = {"steps=3", "seed=2"};
  ASSERT_OK_AND_ASSIGN(const v1::CreateJobRequest request,
                       MakeRunRequest(flags_, environment_));
  EXPECT_EQ(request.file(), "name: tiny\n");
  EXPECT_EQ(request.file_name(), flags_.job_file);
  EXPECT_EQ(request.base_directory(), dir_.Path("jobs"));
  EXPECT_THAT(request.overrides(), ElementsAre("steps=3", "seed=2"));
  EXPECT_EQ(request.flag_overrides_size(), 0);
  EXPECT_EQ(request.run_directory(), "");
}

TEST_F(RunRequestTest, StagesAreAnOverrideThatNamesItsFlag) {
  flags_.stages = 3;
  ASSERT_OK_AND_ASSIGN(const v1::CreateJobRequest request,
                       MakeRunRequest(flags_, environment_));
  ASSERT_EQ(request.flag_overrides_size(), 1);
  EXPECT_EQ(request.flag_overrides(0).flag(), "--stages");
  EXPECT_EQ(request.flag_overrides(0).setting(), "pipeline.stages=3");
}

TEST_F(RunRequestTest, WithoutAWorkingDirectoryAllPathsAreAbsolute) {
  environment_.working_directory = "";
  EXPECT_THAT(MakeRunRequest(flags_, environment_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not exist any more")));
  flags_.run_directory = dir_.Path("run");
  ASSERT_OK_AND_ASSIGN(const v1::CreateJobRequest request,
                       MakeRunRequest(flags_, environment_));
  EXPECT_EQ(request.base_directory(), dir_.Path("jobs"));
}

TEST_F(RunRequestTest, AWorkingDirectoryThatIsNoTextIsRefused) {
  environment_.working_directory = "/a\xff";
  EXPECT_THAT(MakeRunRequest(flags_, environment_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the working directory \"/a\\xff\"")));
}

TEST_F(RunRequestTest, ARunDirectoryWithSomethingInItIsRefused) {
  flags_.run_directory = dir_.Path("jobs");
  EXPECT_THAT(
      MakeRunRequest(flags_, environment_).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not empty")));
}

}  // namespace
}  // namespace penstock::client::commands
