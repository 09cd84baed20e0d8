#include "coordinator/jobs/in_memory_job_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/jobs/job_state.h"

namespace penstock::coordinator::jobs {

InMemoryJobStore::Records::const_iterator InMemoryJobStore::Find(
    absl::string_view id_or_name) const {
  if (const auto it = by_id_.find(std::string(id_or_name));
      it != by_id_.end()) {
    return records_.find(it->second);
  }
  for (auto it = records_.end(); it != records_.begin();) {
    if ((--it)->second.job.name() == id_or_name) return it;
  }
  return records_.end();
}

absl::Status InMemoryJobStore::Create(const JobRecord& record) {
  const std::string& id = record.job.id();
  if (by_id_.count(id) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a job ", id, " already; choose another id"));
  }
  const int64_t number = created_++;
  by_id_[id] = number;
  if (!record.request.request_id().empty()) {
    by_request_id_[record.request.request_id()] = number;
  }
  records_[number] = record;
  return absl::OkStatus();
}

absl::Status InMemoryJobStore::Update(const v1::Job& job) {
  const auto it = by_id_.find(job.id());
  if (it == by_id_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job.id()));
  }
  v1::Job& stored = records_.at(it->second).job;
  if (stored.state() != job.state()) {
    RETURN_IF_ERROR(CheckTransition(stored.state(), job.state()));
    if (IsTerminal(job.state())) ended_.push_back(it->second);
  }
  stored = job;
  return absl::OkStatus();
}

absl::StatusOr<JobRecord> InMemoryJobStore::Get(
    absl::string_view id_or_name) const {
  const auto it = Find(id_or_name);
  if (it == records_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no job with id or name \"", id_or_name, "\""));
  }
  return it->second;
}

absl::StatusOr<JobRecord> InMemoryJobStore::GetByRequestId(
    absl::string_view request_id) const {
  const auto it = by_request_id_.find(std::string(request_id));
  if (it == by_request_id_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no job of request ", request_id));
  }
  return records_.at(it->second);
}

absl::StatusOr<std::vector<v1::Job>> InMemoryJobStore::List(
    absl::string_view before, int limit) const {
  auto next = records_.end();  // One past it.
  if (!before.empty()) {
    const auto it = by_id_.find(std::string(before));
    if (it == by_id_.end()) {
      return absl::NotFoundError(absl::StrCat("there is no job ", before));
    }
    next = records_.find(it->second);
  }
  std::vector<v1::Job> jobs;
  while (next != records_.begin() && static_cast<int>(jobs.size()) < limit) {
    jobs.push_back((--next)->second.job);
  }
  return jobs;
}

std::vector<v1::Job> InMemoryJobStore::ForgetEnded(size_t kept) {
  std::vector<v1::Job> forgotten;
  while (ended_.size() > kept) {
    const auto it = records_.find(ended_.front());
    ended_.pop_front();
    by_id_.erase(it->second.job.id());
    by_request_id_.erase(it->second.request.request_id());
    forgotten.push_back(std::move(it->second.job));
    records_.erase(it);
  }
  return forgotten;
}

}  // namespace penstock::coordinator::jobs
