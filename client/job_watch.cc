#include "client/job_watch.h"

#include <utility>

namespace penstock::client {

using common::sync::MutexLock;

JobWatch::JobWatch(CoordinatorClient& client, const std::string& job_id,
                   std::function<void()> wake)
    : client_(client),
      wake_(std::move(wake)),
      thread_([this, job_id] { Run(job_id); }) {}

JobWatch::~JobWatch() {
  client_.CancelWatch();
  thread_.join();
}

std::vector<v1::JobEvent> JobWatch::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(events_, {});
}

std::optional<absl::Status> JobWatch::ended() const {
  MutexLock lock(&mutex_);
  return ended_;
}

void JobWatch::Run(const std::string& job_id) {
  int64_t revision = 0;
  absl::Status status;
  do {
    status =
        client_.WatchJob(job_id, revision, [this](const v1::JobEvent& event) {
          {
            MutexLock lock(&mutex_);
            events_.push_back(event);
          }
          wake_();
          return true;
        });
    // Too slow, or too old a revision: on from a fresh snapshot.
    if (absl::IsOutOfRange(status)) revision = 0;
  } while (absl::IsOutOfRange(status));
  {
    MutexLock lock(&mutex_);
    ended_ = status;
  }
  wake_();
}

}  // namespace penstock::client
