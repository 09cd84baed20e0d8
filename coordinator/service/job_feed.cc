#include "coordinator/service/job_feed.h"

#include "absl/strings/str_cat.h"
#include "common/time/proto_time.h"
#include "coordinator/jobs/job_state.h"

namespace penstock::coordinator::service {

void JobFeed::Publish(const std::string& job_id, const v1::JobEvent& event) {
  common::sync::MutexLock lock(&mutex_);
  Job& job = jobs_[job_id];
  job.events.push_back(event);
  if (job.events.size() > kKept) job.events.pop_front();
  if (event.has_job()) {
    job.ended = jobs::IsTerminal(event.job().state());
    if (job.ended) {
      job.last.Clear();
      job.events.erase(job.events.begin(), job.events.end() - 1);
    } else {
      job.last = event;
    }
  }
  for (JobWatcher* watcher : job.watchers) watcher->Offer(event);
}

void JobFeed::Forget(const std::string& job_id) {
  common::sync::MutexLock lock(&mutex_);
  jobs_.erase(job_id);
}

absl::Status JobFeed::Watch(const std::string& job_id, int64_t after_revision,
                            JobWatcher* watcher) {
  common::sync::MutexLock lock(&mutex_);
  const auto it = jobs_.find(job_id);
  if (it == jobs_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job_id));
  }
  Job& job = it->second;
  const int64_t oldest = job.events.front().revision();
  const int64_t newest = job.events.back().revision();
  int64_t after = after_revision;
  if (after == 0) {
    watcher->Offer(job.snapshot());
    after = job.snapshot().revision();
  } else if (after < oldest - 1) {
    return absl::OutOfRangeError(absl::StrCat(
        "job ", job_id, ": revision ", after_revision,
        " is no longer kept, the oldest is ", oldest, "; watch again from 0"));
  } else if (after > newest) {
    return absl::OutOfRangeError(
        absl::StrCat("job ", job_id, ": there is no revision ", after_revision,
                     " yet, the newest is ", newest, "; watch again from 0"));
  } else if (after == newest && job.ended) {
    watcher->End();
    return absl::OkStatus();
  }
  for (const v1::JobEvent& event : job.events) {
    if (event.revision() > after) watcher->Offer(event);
  }
  job.watchers.insert(watcher);
  return absl::OkStatus();
}

void JobFeed::Unwatch(JobWatcher* watcher) {
  common::sync::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) job.watchers.erase(watcher);
}

void JobFeed::Bookmark(absl::Time now) {
  common::sync::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (job.watchers.empty()) continue;
    v1::JobEvent event;
    event.set_revision(job.events.back().revision());
    *event.mutable_time() = common::time::ToProto(now);
    event.mutable_bookmark();
    for (JobWatcher* watcher : job.watchers) watcher->Offer(event);
  }
}

}  // namespace penstock::coordinator::service
