#include "coordinator/jobs/in_memory_job_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/jobs/job_state.h"

namespace penstock::coordinator::jobs {

int InMemoryJobStore::Find(absl::string_view id_or_name) const {
  if (const auto it = by_id_.find(std::string(id_or_name));
      it != by_id_.end()) {
    return it->second;
  }
  for (int i = static_cast<int>(records_.size()) - 1; i >= 0; --i) {
    if (records_[i].job.name() == id_or_name) return i;
  }
  return -1;
}

absl::Status InMemoryJobStore::Create(const JobRecord& record) {
  const std::string& id = record.job.id();
  if (by_id_.count(id) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a job ", id, " already; choose another id"));
  }
  const int index = static_cast<int>(records_.size());
  by_id_[id] = index;
  if (!record.request.request_id().empty()) {
    by_request_id_[record.request.request_id()] = index;
  }
  records_.push_back(record);
  return absl::OkStatus();
}

absl::Status InMemoryJobStore::Update(const v1::Job& job) {
  const auto it = by_id_.find(job.id());
  if (it == by_id_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job.id()));
  }
  v1::Job& stored = records_[it->second].job;
  if (stored.state() != job.state()) {
    RETURN_IF_ERROR(CheckTransition(stored.state(), job.state()));
  }
  stored = job;
  return absl::OkStatus();
}

absl::StatusOr<JobRecord> InMemoryJobStore::Get(
    absl::string_view id_or_name) const {
  const int index = Find(id_or_name);
  if (index < 0) {
    return absl::NotFoundError(
        absl::StrCat("there is no job with id or name \"", id_or_name, "\""));
  }
  return records_[index];
}

absl::StatusOr<JobRecord> InMemoryJobStore::GetByRequestId(
    absl::string_view request_id) const {
  const auto it = by_request_id_.find(std::string(request_id));
  if (it == by_request_id_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no job of request ", request_id));
  }
  return records_[it->second];
}

absl::StatusOr<std::vector<v1::Job>> InMemoryJobStore::List(
    absl::string_view before, int limit) const {
  int next = static_cast<int>(records_.size()) - 1;
  if (!before.empty()) {
    const auto it = by_id_.find(std::string(before));
    if (it == by_id_.end()) {
      return absl::NotFoundError(absl::StrCat("there is no job ", before));
    }
    next = it->second - 1;
  }
  std::vector<v1::Job> jobs;
  for (; next >= 0 && static_cast<int>(jobs.size()) < limit; --next) {
    jobs.push_back(records_[next].job);
  }
  return jobs;
}

}  // namespace penstock::coordinator::jobs
