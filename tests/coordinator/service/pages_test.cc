#include "coordinator/service/pages.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// stage-0 .. stage-(count - 1), as the registry lists them.
std::vector<v1::Stage> Stages(int count) {
  std::vector<v1::Stage> stages(count);
  for (int i = 0; i < count; ++i) stages[i].set_name(absl::StrCat("stage-", i));
  return stages;
}

std::vector<std::string> Names(const v1::ListStagesResponse& page) {
  std::vector<std::string> names;
  for (const v1::Stage& stage : page.stages()) names.push_back(stage.name());
  return names;
}

TEST(PagesTest, SizesAreDefaultedAndCut) {
  EXPECT_THAT(PageSize(0), IsOkAndHolds(100));
  EXPECT_THAT(PageSize(7), IsOkAndHolds(7));
  EXPECT_THAT(PageSize(5000), IsOkAndHolds(1000));
  EXPECT_THAT(PageSize(-1), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("page_size is -1")));
}

// "job-0", ... with so many bytes each, and few more.
std::vector<v1::Job> Jobs(int count, int bytes) {
  std::vector<v1::Job> jobs(count);
  for (int i = 0; i < count; ++i) {
    jobs[i].set_id(absl::StrCat("job-", i));
    jobs[i].set_summary_json(std::string(bytes, 's'));
  }
  return jobs;
}

TEST(PagesTest, APageOfJobsNamesItsLastWhereThereAreMore) {
  v1::ListJobsResponse page = PageOfJobs(Jobs(3, 10), 2);
  ASSERT_EQ(page.jobs_size(), 2);
  EXPECT_EQ(page.jobs(0).id(), "job-0");
  EXPECT_EQ(page.next_page_token(), "job-1");
  page = PageOfJobs(Jobs(2, 10), 2);
  EXPECT_EQ(page.jobs_size(), 2);
  EXPECT_EQ(page.next_page_token(), "");
  EXPECT_EQ(PageOfJobs({}, 2).jobs_size(), 0);
}

TEST(PagesTest, APageOfLargeJobsFitsInAMessage) {
  const v1::ListJobsResponse page = PageOfJobs(Jobs(1000, 100'000), 1000);
  EXPECT_EQ(page.jobs_size(), 41);
  EXPECT_EQ(page.next_page_token(), "job-40");
  EXPECT_LE(page.ByteSizeLong(), 4 << 20);
  // Small ones too, of which what is around them counts.
  const v1::ListJobsResponse small = PageOfJobs(Jobs(1000, 20), 1000, 1000);
  EXPECT_GT(small.jobs_size(), 20);
  EXPECT_LE(small.ByteSizeLong(), 1000 + 10);  // And the token.
}

TEST(PagesTest, AJobThatIsTooLargeIsAPage) {
  const v1::ListJobsResponse page = PageOfJobs(Jobs(2, 1000), 10, 100);
  EXPECT_EQ(page.jobs_size(), 1);
  EXPECT_EQ(page.next_page_token(), "job-0");
}

TEST(PagesTest, Stage2ComesBeforeStage10OnEveryPage) {
  std::vector<std::string> all;
  std::string token;
  do {
    ASSERT_OK_AND_ASSIGN(const v1::ListStagesResponse page,
                         PageOfStages(Stages(12), token, 5));
    for (const std::string& name : Names(page)) all.push_back(name);
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(all, ElementsAre("stage-0", "stage-1", "stage-2", "stage-3",
                               "stage-4", "stage-5", "stage-6", "stage-7",
                               "stage-8", "stage-9", "stage-10", "stage-11"));
}

TEST(PagesTest, ATokenWhoseStageIsGoneStillHasItsPlace) {
  std::vector<v1::Stage> stages = Stages(4);
  stages.erase(stages.begin() + 1);
  ASSERT_OK_AND_ASSIGN(const v1::ListStagesResponse page,
                       PageOfStages(stages, "stage-1", 0));
  EXPECT_THAT(Names(page), ElementsAre("stage-2", "stage-3"));
  EXPECT_EQ(page.next_page_token(), "");
}

TEST(PagesTest, AFullLastPageHasNoNext) {
  ASSERT_OK_AND_ASSIGN(const v1::ListStagesResponse page,
                       PageOfStages(Stages(3), "", 3));
  EXPECT_EQ(page.stages_size(), 3);
  EXPECT_EQ(page.next_page_token(), "");
}

}  // namespace
}  // namespace penstock::coordinator::service
