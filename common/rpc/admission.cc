#include "common/rpc/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::common::rpc {

using sync::MutexLock;

Admission::Admission(std::string what, int limit, std::string remedy)
    : what_(std::move(what)), limit_(limit), remedy_(std::move(remedy)) {}

absl::StatusOr<Admission::Ticket> Admission::Enter() {
  {
    MutexLock lock(&mutex_);
    if (count_ >= limit_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", count_, " ", what_,
                       " already, which is the limit; ", remedy_));
    }
    ++count_;
  }
  return Ticket(this, [this](const Admission*) { Leave(); });
}

void Admission::Leave() {
  MutexLock lock(&mutex_);
  --count_;
}

}  // namespace penstock::common::rpc
