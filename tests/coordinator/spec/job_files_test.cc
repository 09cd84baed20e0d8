// Golden files: tests/testdata/job_files/bad/NAME.yaml with the exact text of
// its errors in NAME.err, and good/NAME.yaml with the resolved job in
// NAME.resolved. After a change of a message, run this binary with
// PENSTOCK_REGENERATE_GOLDEN=1 and review the difference.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/status/error_details.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/resolved_yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::spec {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::HasSubstr;

std::filesystem::path Folder(absl::string_view name) {
  return std::filesystem::path(std::getenv("PENSTOCK_TEST_DATA")) /
         "job_files" / std::string(name);
}

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Compares with the golden file, or writes it.
void ExpectGolden(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("PENSTOCK_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(text, Read(path)) << path;
}

std::vector<std::filesystem::path> JobFiles(absl::string_view folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(Folder(folder))) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(JobFilesTest, EachBadFileGivesExactlyItsErrors) {
  const auto files = JobFiles("bad");
  ASSERT_GE(files.size(), 45u);
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    const ParsedJob job =
        ParseJob(Read(path), path.filename().string(), ParseOptions{});
    EXPECT_THAT(job.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr(path.filename().string())));
    EXPECT_EQ(common::status::Reason(job.status()), "INVALID_SPEC");
    const std::string errors = RenderAll(job.violations, job.positions) + "\n";
    ExpectGolden(std::filesystem::path(path).replace_extension(".err"), errors);
  }
}

void ExpectResolves(const std::filesystem::path& path,
                    const std::filesystem::path& golden) {
  SCOPED_TRACE(path);
  const ParsedJob job =
      ParseJob(Read(path), path.filename().string(), ParseOptions{});
  ASSERT_THAT(job.status(), IsOk());
  const std::string resolved = ToResolvedYaml(job.spec);
  ExpectGolden(golden, resolved);
  const ParsedJob again = ParseJob(resolved, "job.yaml", ParseOptions{});
  ASSERT_THAT(again.status(), IsOk());
  // job.yaml says which format `auto` was.
  JobSpec decided = job.spec;
  decided.data.format_by_name = false;
  EXPECT_TRUE(again.spec == decided);
  EXPECT_EQ(ToResolvedYaml(again.spec), resolved);
}

TEST(JobFilesTest, EachGoodFileIsResolvedAndReadsBackEqual) {
  const auto files = JobFiles("good");
  ASSERT_GE(files.size(), 4u);
  for (const auto& path : files) {
    ExpectResolves(path,
                   std::filesystem::path(path).replace_extension(".resolved"));
  }
}

// The job of `./dev demo`.
TEST(JobFilesTest, TheExampleIsResolvedAndReadsBackEqual) {
  const std::filesystem::path root =
      Folder("").parent_path().parent_path().parent_path().parent_path();
  ExpectResolves(root / "examples" / "shakespeare" / "job.yaml",
                 Folder("good") / "examples_shakespeare.resolved");
}

}  // namespace
}  // namespace penstock::coordinator::spec
