#include "coordinator/service/job_intake.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "coordinator/schedule/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Mode = JobIntake::Mode;

constexpr char kJob[] = R"(name: tiny
model: {family: gpt2, layers: 2, width: 8, heads: 2, context: 16}
data: {train: data/train.txt, validation: ../held/out.txt}
batch: {global: 2}
pipeline: {schedule: "file:order.csv"}
steps: 3
)";

class JobIntakeTest : public ::testing::Test {
 protected:
  v1::CreateJobRequest Request(const std::string& file = kJob) {
    v1::CreateJobRequest request;
    request.set_file(file);
    request.set_file_name("tiny.yaml");
    request.set_base_directory(dir_.path());
    return request;
  }
  fs::path Write(const std::string& name, const std::string& contents) {
    const fs::path path = fs::path(dir_.path()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

  tests::fakes::TempDir dir_;
};

TEST_F(JobIntakeTest, EveryPathBecomesAbsoluteAndTheScheduleIsRead) {
  Write("order.csv", "0F0\n");
  ASSERT_OK_AND_ASSIGN(const dispatch::NewJob job,
                       JobIntake(Mode::kEmbedded).Read(Request()));
  const fs::path base(dir_.path());
  EXPECT_EQ(job.spec.data.train, (base / "data/train.txt").string());
  EXPECT_EQ(job.spec.data.validation->path,
            (base.parent_path() / "held/out.txt").string());
  EXPECT_EQ(job.spec.pipeline.schedule_file, (base / "order.csv").string());
  EXPECT_EQ(job.spec.model.from, "");
  EXPECT_EQ(job.schedule_text, "0F0\n");
}

TEST_F(JobIntakeTest, AProfileIsRead) {
  v1::CreateJobRequest request = Request();
  request.add_overrides("pipeline.schedule=1f1b");
  request.add_overrides("device=virtual");
  request.add_overrides("virtual.profile=times/p.json");
  EXPECT_THAT(JobIntake(Mode::kEmbedded).Read(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("virtual.profile: "),
                             HasSubstr("times/p.json"))));
  const fs::path path = Write("times/p.json", "{}");
  ASSERT_OK_AND_ASSIGN(const dispatch::NewJob job,
                       JobIntake(Mode::kEmbedded).Read(request));
  EXPECT_EQ(job.profile_text, "{}");
  EXPECT_EQ(job.spec.virtual_times.profile, path.string());
}

TEST_F(JobIntakeTest, AnAbsolutePathStays) {
  v1::CreateJobRequest request = Request();
  request.add_overrides("data.train=/elsewhere/a:b.txt");
  request.add_overrides("pipeline.schedule=1f1b");
  ASSERT_OK_AND_ASSIGN(const dispatch::NewJob job,
                       JobIntake(Mode::kEmbedded).Read(request));
  EXPECT_EQ(job.spec.data.train, "/elsewhere/a:b.txt");
}

TEST_F(JobIntakeTest, AFlagOverrideIsAppliedLastAndNamedAsItsFlag) {
  v1::CreateJobRequest request = Request();
  request.add_overrides("pipeline={schedule: 1f1b, stages: 1}");
  v1::FlagOverride& stages = *request.add_flag_overrides();
  stages.set_flag("--stages");
  stages.set_setting("pipeline.stages=2");
  const JobIntake intake(Mode::kEmbedded);
  ASSERT_OK_AND_ASSIGN(const dispatch::NewJob job, intake.Read(request));
  EXPECT_EQ(job.spec.pipeline.stages, 2);
  stages.set_setting("pipeline.stages=5");
  EXPECT_THAT(intake.Read(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                             StartsWith("--stages: 5 stages")));
}

TEST_F(JobIntakeTest, AFlagOverrideNamesAFlag) {
  v1::CreateJobRequest request = Request();
  v1::FlagOverride& stages = *request.add_flag_overrides();
  stages.set_setting("pipeline.stages=2");
  for (const std::string& flag :
       {std::string(), std::string("--"), std::string("stages"),
        std::string("--a\x1b[2J"), std::string("--\nsteps: 3"),
        absl::StrCat("--", std::string(63, 'a'))}) {
    stages.set_flag(flag);
    EXPECT_THAT(JobIntake(Mode::kEmbedded).Read(request),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("flag_overrides: flag \"")))
        << flag;
  }
}

TEST_F(JobIntakeTest, AScheduleFileThatIsNotThereIsNamedAtItsKey) {
  EXPECT_THAT(
      JobIntake(Mode::kEmbedded).Read(Request()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("tiny.yaml:5:12: pipeline.schedule: "),
                     HasSubstr("order.csv: cannot be read: No such file"))));
}

TEST_F(JobIntakeTest, AScheduleFileMayNotBeAFolderOrHuge) {
  fs::create_directories(fs::path(dir_.path()) / "order.csv");
  EXPECT_THAT(JobIntake(Mode::kEmbedded).Read(Request()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("order.csv: is a folder, not a file")));
  fs::remove(fs::path(dir_.path()) / "order.csv");
  Write("order.csv", "");
  fs::resize_file(fs::path(dir_.path()) / "order.csv", schedule::kMaxCsvBytes);
  EXPECT_OK(JobIntake(Mode::kEmbedded).Read(Request()));
  fs::resize_file(fs::path(dir_.path()) / "order.csv",
                  schedule::kMaxCsvBytes + 1);
  EXPECT_THAT(JobIntake(Mode::kEmbedded).Read(Request()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("order.csv: has more than 47185920 bytes")));
}

// Below a folder that is a link to itself nothing can be looked at.
TEST_F(JobIntakeTest, AFileThatCannotBeLookedAtIsNotCalledTooLarge) {
  fs::create_symlink("order.csv", fs::path(dir_.path()) / "order.csv");
  EXPECT_THAT(JobIntake(Mode::kEmbedded).Read(Request()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("order.csv: cannot be read: "),
                             Not(HasSubstr("more than")))));
}

TEST_F(JobIntakeTest, FoldersOfTheRequestAreAbsolute) {
  Write("order.csv", "0F0\n");
  const JobIntake intake(Mode::kEmbedded);
  v1::CreateJobRequest request = Request();
  request.set_run_directory("runs/x");
  EXPECT_THAT(
      intake.Read(request),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "run_directory is \"runs/x\"; it must be an absolute path"));
  request.set_run_directory(std::string("/a\0b", 4));
  EXPECT_THAT(intake.Read(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run_directory is \"/a\\x00b\"")));
  request = Request();
  request.set_base_directory(".");
  EXPECT_THAT(intake.Read(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("base_directory is \".\"")));
  request.clear_base_directory();
  EXPECT_THAT(intake.Read(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("data.train: \"data/train.txt\" is relative, "
                                 "and the request has no base_directory")));
}

TEST_F(JobIntakeTest, AFolderWithResultsIsNotForAnotherJob) {
  Write("order.csv", "0F0\n");
  const JobIntake intake(Mode::kEmbedded);
  v1::CreateJobRequest request = Request();
  request.set_run_directory(dir_.Path("new"));
  EXPECT_OK(intake.Read(request)->run_directory_fault);
  Write("new/logs/stage-0.log", "");  // As `penstock run` makes it.
  EXPECT_OK(intake.Read(request)->run_directory_fault);
  for (const std::string result : {"job.yaml", ".model-tmp-1-1"}) {
    const fs::path path = Write(absl::StrCat("new/", result), "");
    EXPECT_THAT(intake.Read(request)->run_directory_fault,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("new\" holds ", result,
                                                " of another job"))));
    fs::remove(path);
  }
  request.set_run_directory(Write("file", "").string());
  EXPECT_THAT(intake.Read(request)->run_directory_fault,
              StatusIs(::testing::_, HasSubstr("Not a directory")));
}

TEST_F(JobIntakeTest, ADeployedCoordinatorRefusesEachPathAndOpensNone) {
  const fs::path schedule = Write("order.csv", "0F0\n");
  v1::CreateJobRequest request = Request();
  request.clear_base_directory();
  request.add_overrides(
      absl::StrCat("pipeline.schedule=file:", schedule.string()));
  EXPECT_THAT(
      JobIntake(Mode::kDeployed).Read(request).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("data.train: 'data/train.txt' is no ROOT:path"),
                     HasSubstr("data.validation: '../held/out.txt' is no"),
                     HasSubstr("order.csv' is no ROOT:path"))));
}

TEST_F(JobIntakeTest, ADeployedCoordinatorOpensNoModelFolder) {
  Write("llama/config.json", "{}");
  v1::CreateJobRequest request = Request(
      absl::StrCat("name: tiny\nmodel: {from: ", dir_.path(), "/llama}\n",
                   "data: {train: a.txt}\nbatch: {global: 2}\nsteps: 3\n"));
  request.clear_base_directory();
  EXPECT_THAT(JobIntake(Mode::kDeployed).Read(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("llama' is no ROOT:path"),
                             Not(HasSubstr("model_type")))));
}

TEST_F(JobIntakeTest, ADeployedCoordinatorTakesNoFolders) {
  EXPECT_THAT(JobIntake(Mode::kDeployed).Read(Request()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("are for the embedded cluster")));
}

}  // namespace
}  // namespace penstock::coordinator::service
