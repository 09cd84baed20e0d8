// What no job file may exceed, and how a large one is refused.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/spec/job_parser.h"
#include "coordinator/spec/violation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/spec/job_file_case.h"

namespace penstock::coordinator::spec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobParserTest, MoreThanAMebibyteIsRefused) {
  const std::string big = absl::StrCat(kJob, std::string(1 << 20, '#'));
  EXPECT_THAT(Errors(big), HasSubstr("at most 1048576 (1 MiB) are allowed"));
}

TEST(JobParserTest, ManyValuesAreRefusedNotBuilt) {
  std::string many = "x: [";
  for (int i = 0; i < 70000; ++i) many += "1,";
  EXPECT_THAT(Errors(many + "]\n"), HasSubstr("holds more than 65536 values"));
}

TEST(JobParserTest, TheSetListIsBoundedAsTheFileIs) {
  std::vector<std::string> many(1000, "seed=1");
  EXPECT_EQ(Errors(kJob, many), "");
  many.push_back("steps=3");
  EXPECT_EQ(Errors(kJob, many),
            "--set: is given 1001 times, 6007 bytes in all; at most 1000 and "
            "1048576 (1 MiB) are allowed");
  const std::string half =
      absl::StrCat("seed=1 #", std::string((1 << 19) - 8, ' '));
  EXPECT_EQ(Errors(kJob, {half, half}), "");
  EXPECT_THAT(Errors(kJob, {half, half, "seed=1"}),
              HasSubstr("is given 3 times, 1048582 bytes in all"));
}

TEST(JobParserTest, ValuesOfTheFileAndOfTheSetListAreCountedTogether) {
  std::string list = "[";
  for (int i = 0; i < 32000; ++i) list += "1,";
  list += "]";
  const std::string file = absl::StrCat(kJob, "x: ", list, "\n");
  EXPECT_THAT(Errors(file, {absl::StrCat("y=", list)}),
              Not(HasSubstr("more than 65536 values")));
  EXPECT_THAT(Errors(file, {absl::StrCat("y=", list), absl::StrCat("z=", list),
                            absl::StrCat("a.b.c=", list)}),
              AllOf(HasSubstr("--set z: with this value the job file and what "
                              "is set over it hold more than 65536 values"),
                    Not(HasSubstr("--set a"))));
}

TEST(JobParserTest, OnlyTheFirstThousandErrorsAreKept) {
  std::string items;
  for (int i = 0; i < 60000; ++i) items += "&a 1,";
  const ParsedJob anchors =
      ParseJob(absl::StrCat(kJob, "x: [", items, "]\n"), "job.yaml", {});
  EXPECT_EQ(anchors.violations.front().key_path, "x[0]");
  EXPECT_GE(anchors.violations.size(), kMaxViolations);
  EXPECT_LE(anchors.violations.size(), kMaxViolations + 20);

  std::string blocks;
  for (int i = 0; i < 60000; ++i) blocks += "x,";
  const ParsedJob partition =
      ParseJob(absl::StrCat(kJob, "pipeline: {partition: [", blocks, "]}\n"),
               "job.yaml", {});
  EXPECT_EQ(partition.violations.size(), kMaxViolations);
}

// No key of the job file is as long; what stands so deep is shown by what is
// around it.
TEST(JobParserTest, LongPathsHaveThePlaceOfTheirSection) {
  std::string text, path;
  for (int i = 0; i < 6; ++i) {
    const std::string key(64, static_cast<char>('a' + i));
    absl::StrAppend(&text, std::string(i, ' '), key, ":\n");
    absl::StrAppend(&path, i > 0 ? "." : "", key);
  }
  const ParsedJob job =
      ParseJob(absl::StrCat(text, "      z: 1\n"), "job.yaml", {});
  EXPECT_EQ(job.positions.Where(path.substr(0, 3 * 65 - 1)), "job.yaml:3:3");
  EXPECT_EQ(job.positions.Where(path), "job.yaml:3:3");
  EXPECT_THAT(Errors(kJob, {absl::StrCat(path, "=1")}),
              HasSubstr("expected KEY=VALUE with a dotted key"));
}

}  // namespace
}  // namespace penstock::coordinator::spec
