#include "coordinator/service/job_feed.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::coordinator::service {
namespace {

using ::penstock::testing::IsOk;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Recorder : public JobWatcher {
 public:
  void Offer(const v1::JobEvent& event) override {
    revisions.push_back(event.revision());
    bookmarks += event.has_bookmark();
  }
  void End() override { ++ends; }
  std::vector<int64_t> revisions;
  int ends = 0;
  int bookmarks = 0;
};

v1::JobEvent Snapshot(int64_t revision) {
  v1::JobEvent event;
  event.set_revision(revision);
  event.mutable_job()->set_state(v1::Job::STATE_RUNNING);
  return event;
}
v1::JobEvent Metrics(int64_t revision) {
  v1::JobEvent event;
  event.set_revision(revision);
  event.mutable_metrics()->set_step(revision);
  return event;
}

TEST(JobFeedTest, SnapshotComesFirstThenEverythingAfterIt) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  feed.Publish("a", Snapshot(2));
  feed.Publish("a", Metrics(3));
  Recorder watcher;
  ASSERT_OK(feed.Watch("a", 0, &watcher));
  feed.Publish("a", Metrics(4));
  feed.Publish("b", Snapshot(1));
  EXPECT_THAT(watcher.revisions, ElementsAre(2, 3, 4));
}

TEST(JobFeedTest, WatchingOnHasNoGapAndNoRepetition) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  for (int i = 2; i <= 6; ++i) feed.Publish("a", Metrics(i));
  Recorder watcher;
  ASSERT_OK(feed.Watch("a", 4, &watcher));
  EXPECT_THAT(watcher.revisions, ElementsAre(5, 6));
}

TEST(JobFeedTest, ForgottenRevisionIsOutOfRangeAndSaysWhatIsKept) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  for (int i = 2; i <= JobFeed::kKept + 10; ++i) feed.Publish("a", Metrics(i));
  Recorder watcher;
  EXPECT_THAT(
      feed.Watch("a", 3, &watcher),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the oldest is 11")));
  // From the start it still works: the snapshot, then what is kept.
  ASSERT_OK(feed.Watch("a", 0, &watcher));
  EXPECT_THAT(watcher.revisions, SizeIs(1 + JobFeed::kKept));
}

TEST(JobFeedTest, ARevisionThatIsYetToComeIsOutOfRange) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  Recorder watcher;
  EXPECT_THAT(
      feed.Watch("a", int64_t{1} << 62, &watcher),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the newest is 1")));
  EXPECT_THAT(
      feed.Watch("a", std::numeric_limits<int64_t>::max(), &watcher),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the newest is 1")));
  EXPECT_THAT(feed.Watch("a", std::numeric_limits<int64_t>::min(), &watcher),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_OK(feed.Watch("a", 1, &watcher));
  EXPECT_EQ(watcher.ends, 0);
}

TEST(JobFeedTest, AJobThatHasEndedHasNothingAfterItsLastRevision) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  v1::JobEvent end = Snapshot(2);
  end.mutable_job()->set_state(v1::Job::STATE_SUCCEEDED);
  feed.Publish("a", end);
  Recorder watcher;
  ASSERT_OK(feed.Watch("a", 2, &watcher));
  EXPECT_EQ(watcher.ends, 1);
  Recorder late;
  ASSERT_OK(feed.Watch("a", 1, &late));
  EXPECT_EQ(late.ends, 0);
  EXPECT_THAT(late.revisions, ElementsAre(2));
}

TEST(JobFeedTest, OfAJobThatHasEndedTheLastEventIsKept) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  feed.Publish("a", Metrics(2));
  Recorder early;
  ASSERT_OK(feed.Watch("a", 0, &early));
  v1::JobEvent end = Snapshot(3);
  end.mutable_job()->set_state(v1::Job::STATE_FAILED);
  feed.Publish("a", end);
  EXPECT_THAT(early.revisions, ElementsAre(1, 2, 3));
  Recorder late;
  ASSERT_OK(feed.Watch("a", 0, &late));
  EXPECT_THAT(late.revisions, ElementsAre(3));
  EXPECT_THAT(
      feed.Watch("a", 1, &late),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the oldest is 3")));
}

TEST(JobFeedTest, UnknownJobIsNotFound) {
  JobFeed feed;
  Recorder watcher;
  EXPECT_THAT(feed.Watch("a", 0, &watcher),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(JobFeedTest, AForgottenJobIsNotFound) {
  JobFeed feed;
  Recorder watcher;
  v1::JobEvent end = Snapshot(1);
  end.mutable_job()->set_state(v1::Job::STATE_FAILED);
  feed.Publish("a", end);
  ASSERT_OK(feed.Watch("a", 0, &watcher));
  feed.Forget("a");
  EXPECT_THAT(feed.Watch("a", 0, &watcher),
              StatusIs(absl::StatusCode::kNotFound));
  feed.Unwatch(&watcher);
}

TEST(JobFeedTest, UnwatchedHearsNothingMore) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  Recorder watcher;
  ASSERT_OK(feed.Watch("a", 0, &watcher));
  feed.Unwatch(&watcher);
  feed.Publish("a", Metrics(2));
  EXPECT_THAT(watcher.revisions, ElementsAre(1));
}

TEST(JobFeedTest, BookmarkCarriesTheNewestRevision) {
  JobFeed feed;
  feed.Publish("a", Snapshot(1));
  feed.Publish("a", Metrics(2));
  Recorder watcher;
  ASSERT_OK(feed.Watch("a", 0, &watcher));
  feed.Bookmark(absl::FromUnixSeconds(5));
  EXPECT_THAT(watcher.revisions, ElementsAre(1, 2, 2));
  EXPECT_EQ(watcher.bookmarks, 1);
}

}  // namespace
}  // namespace penstock::coordinator::service
