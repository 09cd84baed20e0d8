#include "coordinator/service/job_files.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/status/error_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

namespace fs = std::filesystem;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Mode = dispatch::WriteJobFile::Mode;

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

JobFiles::Listener Collect(std::vector<absl::Status>& failures) {
  return {.on_failure =
              [&](const auto&, const absl::Status& status) {
                failures.push_back(status);
              },
          .on_change =
              [&](const dispatch::FolderChanged& done) {
                failures.push_back(done.status);
              }};
}

TEST(JobFilesTest, AFlushIsAnsweredWhenAllBeforeItIsWritten) {
  tests::fakes::TempDir dir;
  const std::string folder = dir.Path("a");
  std::string summary;
  JobFiles::Listener listener;
  listener.on_change = [&](const dispatch::FolderChanged& done) {
    EXPECT_OK(done.status);
    EXPECT_EQ(done.change, dispatch::ChangeJobFolder::Change::kFlush);
    summary = Contents(fs::path(folder) / "summary.json");
  };
  JobFiles files(listener);
  files.Post(dispatch::WriteJobFile{
      .directory = folder, .name = "summary.json", .contents = "{}"});
  files.Post(dispatch::ChangeJobFolder{
      .directory = folder,
      .change = dispatch::ChangeJobFolder::Change::kFlush});
  files.Drain();
  EXPECT_EQ(summary, "{}");
}

TEST(JobFilesTest, WritesInOrderAndMakesFolders) {
  tests::fakes::TempDir dir;
  const std::string folder = (fs::path(dir.path()) / "jobs" / "a").string();
  std::vector<absl::Status> failures;
  {
    JobFiles files(Collect(failures));
    for (int i = 0; i < 3; ++i) {
      files.Post(dispatch::WriteJobFile{.directory = folder,
                                        .name = "metrics.jsonl",
                                        .contents = std::to_string(i) + "\n",
                                        .mode = Mode::kAppend});
    }
    files.Post(dispatch::WriteJobFile{
        .directory = folder, .name = "job.yaml", .contents = "old"});
    files.Post(dispatch::WriteJobFile{
        .directory = folder, .name = "job.yaml", .contents = "new"});
    files.Drain();
    EXPECT_EQ(Contents(fs::path(folder) / "metrics.jsonl"), "0\n1\n2\n");
    EXPECT_EQ(Contents(fs::path(folder) / "job.yaml"), "new");
  }
  EXPECT_THAT(failures, SizeIs(0));
  EXPECT_FALSE(fs::exists(fs::path(folder) / "job.yaml.tmp"));
}

TEST(JobFilesTest, LinesThatSomebodyTookAreToldOnceAFile) {
  tests::fakes::TempDir dir;
  std::vector<std::string> lost;
  JobFiles::Listener listener{
      .on_failure = [](const auto&, const absl::Status&) {},
      .on_lost =
          [&](const dispatch::WriteJobFile& write) {
            lost.push_back(write.job_id + " " + write.name);
          },
      .on_change = [](const auto&) {}};
  JobFiles files(std::move(listener));
  const auto append = [&](const char* name) {
    files.Post(dispatch::WriteJobFile{.job_id = "a-1",
                                      .directory = dir.path(),
                                      .name = name,
                                      .contents = "line\n",
                                      .mode = Mode::kAppend});
    files.Drain();
  };
  for (const char* name : {"metrics.jsonl", "events.jsonl"}) {
    append(name);
    append(name);
  }
  EXPECT_THAT(lost, SizeIs(0));
  fs::remove(dir.Path("metrics.jsonl"));
  append("metrics.jsonl");
  EXPECT_THAT(lost, ElementsAre("a-1 metrics.jsonl"));
  fs::remove(dir.Path("metrics.jsonl"));
  append("metrics.jsonl");
  EXPECT_THAT(lost, SizeIs(1));
  fs::resize_file(dir.Path("events.jsonl"), 5);
  append("events.jsonl");
  EXPECT_THAT(lost, ElementsAre("a-1 metrics.jsonl", "a-1 events.jsonl"));
}

TEST(JobFilesTest, FailureNamesThePath) {
  tests::fakes::TempDir dir;
  std::ofstream(fs::path(dir.path()) / "file") << "no folder";
  const absl::Status status =
      WriteNow({.directory = (fs::path(dir.path()) / "file").string(),
                .name = "job.yaml",
                .contents = ""});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               HasSubstr("/file: Not a directory")));
}

TEST(JobFilesTest, FullDiskIsResourceExhausted) {
  const absl::Status status = WriteNow({.directory = "/dev",
                                        .name = "full",
                                        .contents = "more than nothing",
                                        .mode = Mode::kAppend});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(common::status::Reason(status), "DISK_FULL");
}

// While it lives, no file of this process grows beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_;
};

TEST(JobFilesTest, ALineThatDoesNotFitLeavesTheLinesBeforeWhole) {
  tests::fakes::TempDir dir;
  dispatch::WriteJobFile write{.directory = dir.path(),
                               .name = "metrics.jsonl",
                               .contents = "first\n",
                               .mode = Mode::kAppend};
  ASSERT_OK(WriteNow(write));
  write.contents = "second\n";
  {
    FileSizeLimit limit(9);
    EXPECT_THAT(WriteNow(write), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("metrics.jsonl")));
  }
  EXPECT_EQ(Contents(fs::path(dir.path()) / "metrics.jsonl"), "first\n");
}

TEST(JobFilesTest, AFileThatDoesNotFitLeavesTheOldOneAndNothingElse) {
  tests::fakes::TempDir dir;
  dispatch::WriteJobFile write{
      .directory = dir.path(), .name = "summary.json", .contents = "old"};
  ASSERT_OK(WriteNow(write));
  write.contents = "new and longer";
  {
    FileSizeLimit limit(5);
    EXPECT_THAT(WriteNow(write), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("summary.json")));
  }
  EXPECT_EQ(Contents(fs::path(dir.path()) / "summary.json"), "old");
  EXPECT_FALSE(fs::exists(fs::path(dir.path()) / "summary.json.tmp"));
}

TEST(JobFilesTest, AFolderThatWasRemovedOrRenamedIsNotMadeAgain) {
  tests::fakes::TempDir dir;
  const std::string folder = dir.Path("run");
  std::vector<absl::Status> failures;
  JobFiles files(Collect(failures));
  const auto post = [&] {
    files.Post(dispatch::WriteJobFile{.directory = folder,
                                      .name = "metrics.jsonl",
                                      .contents = "1\n",
                                      .mode = Mode::kAppend});
    files.Drain();
  };
  post();
  EXPECT_THAT(failures, SizeIs(0));
  fs::rename(folder, dir.Path("elsewhere"));
  post();
  ASSERT_THAT(failures, SizeIs(1));
  EXPECT_THAT(failures[0], StatusIs(absl::StatusCode::kNotFound,
                                    HasSubstr("the folder " + folder +
                                              " was removed or renamed")));
  EXPECT_FALSE(fs::exists(folder));
}

TEST(JobFilesTest, OfAForgottenFolderNothingIsKnown) {
  tests::fakes::TempDir dir;
  const std::string folder = dir.Path("a");
  std::vector<absl::Status> failures;
  JobFiles files(Collect(failures));
  const dispatch::WriteJobFile line{.directory = folder,
                                    .name = "metrics.jsonl",
                                    .contents = "x\n",
                                    .mode = Mode::kAppend};
  files.Post(line);
  files.Drain();
  fs::remove_all(folder);
  files.Forget(folder);
  files.Post(line);  // As the first of a job.
  files.Drain();
  EXPECT_THAT(failures, IsEmpty());
  EXPECT_EQ(Contents(fs::path(folder) / "metrics.jsonl"), "x\n");
}

using Change = dispatch::ChangeJobFolder::Change;

TEST(JobFilesTest, AFolderIsMadeFilledAndPublishedWhole) {
  tests::fakes::TempDir dir;
  const std::string run = dir.Path("run");
  dispatch::ChangeJobFolder change{
      .directory = run, .name = ".model-tmp-1-1", .change = Change::kMake};
  EXPECT_OK(ChangeNow(change).status);
  std::ofstream(fs::path(run) / change.name / "config.json") << "{}";
  change.change = Change::kPublish;
  change.to = "model";
  EXPECT_OK(ChangeNow(change).status);
  EXPECT_EQ(Contents(fs::path(run) / "model" / "config.json"), "{}");
  EXPECT_FALSE(fs::exists(fs::path(run) / change.name));
  // There is nothing to publish twice, and nothing is put over a model.
  EXPECT_THAT(ChangeNow(change).status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("run/model")));
  fs::create_directory(fs::path(run) / change.name);
  EXPECT_THAT(ChangeNow(change).status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("Directory not empty")));
  EXPECT_EQ(Contents(fs::path(run) / "model" / "config.json"), "{}");
}

TEST(JobFilesTest, ARemovedFolderIsGoneAndMayHaveBeen) {
  tests::fakes::TempDir dir;
  dispatch::ChangeJobFolder change{
      .directory = dir.path(), .name = ".model-tmp", .change = Change::kMake};
  EXPECT_OK(ChangeNow(change).status);
  std::ofstream(fs::path(dir.path()) / change.name / "half") << "a shard";
  change.change = Change::kRemove;
  EXPECT_OK(ChangeNow(change).status);
  EXPECT_FALSE(fs::exists(fs::path(dir.path()) / change.name));
  EXPECT_OK(ChangeNow(change).status);
}

TEST(JobFilesTest, AFileThatAnotherProcessDidNotWriteHereNamesIt) {
  tests::fakes::TempDir dir;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(fs::path(dir.path()) / name) << text;
  };
  write("probe-0", "nonce");
  write("probe-1", "nonce");
  dispatch::ChangeJobFolder change{
      .directory = dir.path(), .name = ".", .change = Change::kConfirm};
  for (int i = 0; i < 2; ++i) {
    change.expected.push_back({.name = "probe-" + std::to_string(i),
                               .contents = "nonce",
                               .stage_name = "stage-" + std::to_string(i),
                               .host = "b"});
  }
  EXPECT_OK(ChangeNow(change).status);
  EXPECT_FALSE(fs::exists(fs::path(dir.path()) / "probe-1"));  // Of no use now.
  for (const std::string other : {"", "nonc", "nonce!", "other"}) {
    write("probe-0", "nonce");
    write("probe-1", other);
    const dispatch::FolderChanged done = ChangeNow(change);
    EXPECT_EQ(done.stage_name, "stage-1");
    EXPECT_THAT(done.status, StatusIs(absl::StatusCode::kNotFound,
                                      HasSubstr("stage-1 on host b wrote")));
    EXPECT_EQ(common::status::Reason(done.status), "INPUT_NOT_VISIBLE");
  }
}

TEST(JobFilesTest, ChangesAreAnsweredInOrderWithTheWrites) {
  tests::fakes::TempDir dir;
  std::vector<absl::Status> answers;
  JobFiles files(Collect(answers));
  const dispatch::ChangeJobFolder make{.directory = dir.Path("run"),
                                       .name = "model-tmp"};
  files.Post(make);
  files.Post(dispatch::WriteJobFile{
      .directory = make.directory, .name = "model-tmp/index", .contents = "x"});
  dispatch::ChangeJobFolder publish = make;
  publish.change = Change::kPublish;
  publish.to = "model";
  files.Post(publish);
  dispatch::ChangeJobFolder remove = make;
  remove.change = Change::kRemove;
  files.Post(remove);  // Unanswered.
  files.Drain();
  EXPECT_EQ(Contents(fs::path(make.directory) / "model" / "index"), "x");
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_OK(answers[0]);
  EXPECT_OK(answers[1]);
}

}  // namespace
}  // namespace penstock::coordinator::service
