#include "coordinator/jobs/in_memory_job_store.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::jobs {
namespace {

using penstock::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using v1::Job;

JobRecord Record(const std::string& id, const std::string& name,
                 const std::string& request_id = "") {
  JobRecord record;
  record.job.set_id(id);
  record.job.set_name(name);
  record.job.set_state(Job::STATE_QUEUED);
  record.request.set_request_id(request_id);
  return record;
}

TEST(InMemoryJobStoreTest, ATakenIdIsRefused) {
  InMemoryJobStore store;
  ASSERT_OK(store.Create(Record("a-1", "a")));
  EXPECT_THAT(store.Create(Record("a-1", "b")),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("a-1")));
}

TEST(InMemoryJobStoreTest, ANameMeansItsNewestJob) {
  InMemoryJobStore store;
  ASSERT_OK(store.Create(Record("a-1", "a")));
  ASSERT_OK(store.Create(Record("a-2", "a")));
  ASSERT_OK(store.Create(Record("b-1", "b")));
  ASSERT_OK_AND_ASSIGN(const JobRecord newest, store.Get("a"));
  EXPECT_EQ(newest.job.id(), "a-2");
  ASSERT_OK_AND_ASSIGN(const JobRecord by_id, store.Get("a-1"));
  EXPECT_EQ(by_id.job.id(), "a-1");
  EXPECT_THAT(store.Get("c"), StatusIs(absl::StatusCode::kNotFound));
}

TEST(InMemoryJobStoreTest, ARequestIdFindsItsJob) {
  InMemoryJobStore store;
  ASSERT_OK(store.Create(Record("a-1", "a", "r1")));
  ASSERT_OK_AND_ASSIGN(const JobRecord found, store.GetByRequestId("r1"));
  EXPECT_EQ(found.job.id(), "a-1");
  EXPECT_THAT(store.GetByRequestId("r2"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(InMemoryJobStoreTest, OfEndedJobsThoseThatEndedLastAreKept) {
  InMemoryJobStore store;
  const auto fail = [&store](const std::string& id) {
    ASSERT_OK_AND_ASSIGN(JobRecord record, store.Get(id));
    record.job.set_state(Job::STATE_FAILED);
    ASSERT_OK(store.Update(record.job));
    ASSERT_OK(store.Update(record.job));  // It ends once.
  };
  for (const char* id : {"a-1", "a-2", "a-3", "a-4"}) {
    ASSERT_OK(store.Create(Record(id, "a", std::string("request-") + id)));
  }
  fail("a-2");
  fail("a-3");
  fail("a-1");
  EXPECT_THAT(store.ForgetEnded(3), IsEmpty());
  const std::vector<Job> forgotten = store.ForgetEnded(1);
  ASSERT_EQ(forgotten.size(), 2);
  EXPECT_EQ(forgotten[0].id(), "a-2");
  EXPECT_EQ(forgotten[1].id(), "a-3");
  EXPECT_THAT(store.Get("a-2"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store.GetByRequestId("request-a-2"),
              StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK_AND_ASSIGN(const std::vector<Job> left, store.List("", 10));
  ASSERT_EQ(left.size(), 2);
  EXPECT_EQ(left[0].id(), "a-4");
  EXPECT_EQ(left[1].id(), "a-1");
  // One that has not ended stays, whatever comes after it.
  EXPECT_EQ(store.ForgetEnded(0).size(), 1);
  EXPECT_OK(store.GetByRequestId("request-a-4").status());
  ASSERT_OK(store.Create(Record("a-2", "a", "request-a-2")));
}

TEST(InMemoryJobStoreTest, UpdatesKeepToTheTable) {
  InMemoryJobStore store;
  ASSERT_OK(store.Create(Record("a-1", "a")));
  Job job = Record("a-1", "a").job;
  job.set_state(Job::STATE_RUNNING);
  EXPECT_THAT(store.Update(job),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  job.set_state(Job::STATE_PLANNING);
  job.set_step(0);
  EXPECT_OK(store.Update(job));
  job.set_id("b-1");
  EXPECT_THAT(store.Update(job), StatusIs(absl::StatusCode::kNotFound));
}

TEST(InMemoryJobStoreTest, ListsNewestFirstInPages) {
  InMemoryJobStore store;
  for (const char* id : {"a-1", "a-2", "a-3"}) {
    ASSERT_OK(store.Create(Record(id, "a")));
  }
  ASSERT_OK_AND_ASSIGN(auto page, store.List("", 2));
  ASSERT_EQ(page.size(), 2);
  EXPECT_EQ(page[0].id(), "a-3");
  EXPECT_EQ(page[1].id(), "a-2");
  ASSERT_OK_AND_ASSIGN(page, store.List("a-2", 2));
  ASSERT_EQ(page.size(), 1);
  EXPECT_EQ(page[0].id(), "a-1");
  EXPECT_THAT(store.List("x", 2), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace penstock::coordinator::jobs
