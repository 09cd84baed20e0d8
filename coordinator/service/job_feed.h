// What watchers of jobs have been told, and who is listening: snapshot first,
// then events in order without gaps, as WatchJob promises.
#ifndef PENSTOCK_COORDINATOR_SERVICE_JOB_FEED_H_
#define PENSTOCK_COORDINATOR_SERVICE_JOB_FEED_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::coordinator::service {

// Someone who watches one job. Confined to the feed's lock: it is held in every
// call, which must not block and must not call the feed.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  // Of a terminal state it is the last one.
  virtual void Offer(const v1::JobEvent& event) = 0;
  // There is nothing to offer: the job ended before.
  virtual void End() = 0;
};

// Thread-safe.
class JobFeed {
 public:
  // Events that a watcher may come back for, of a job that has not ended; of
  // one that has, the last.
  static constexpr int kKept = 256;

  // Revisions of one job are contiguous, from 1; the last is of a terminal
  // state.
  void Publish(const std::string& job_id, const v1::JobEvent& event);

  // Of a job that has ended: nobody can watch it any more.
  void Forget(const std::string& job_id);

  // Offers `watcher` everything after `after_revision`, then what comes, until
  // Unwatch. 0: the newest snapshot, then what follows it. OutOfRange: that
  // revision is no longer kept, or there was none yet. NotFound: nothing was
  // published of the job.
  absl::Status Watch(const std::string& job_id, int64_t after_revision,
                     JobWatcher* watcher);
  void Unwatch(JobWatcher* watcher);

  // Bookmarks every watcher: call it every 10 s.
  void Bookmark(absl::Time now);

 private:
  struct Job {
    // Newest event with the whole job.
    const v1::JobEvent& snapshot() const {
      return ended ? events.back() : last;
    }

    std::deque<v1::JobEvent> events;  // The newest kKept.
    v1::JobEvent last;                // With the whole job, until it has ended.
    bool ended = false;
    std::set<JobWatcher*> watchers;
  };

  common::sync::Mutex mutex_;
  std::map<std::string, Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::coordinator::service

#endif  // PENSTOCK_COORDINATOR_SERVICE_JOB_FEED_H_
