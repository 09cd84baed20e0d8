// What happened to a job, as lines above its progress.
#ifndef PENSTOCK_CLIENT_OCCURRENCE_LINES_H_
#define PENSTOCK_CLIENT_OCCURRENCE_LINES_H_

#include <vector>

#include "client/progress.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client {

// Warnings and errors, and that stages are waited for. Thread-compatible.
class OccurrenceLines {
 public:
  // Borrows `progress`.
  explicit OccurrenceLines(Progress& progress) : progress_(progress) {}

  // `job` as last seen. An error before its start may become its cause, which
  // is said when it ends: until then it is held back.
  void Add(const v1::Occurrence& what, const v1::Job& job);

  // The job has ended: what was held back is shown, but for its cause.
  void End(const v1::Job& job);

 private:
  void Show(const v1::Occurrence& what);

  Progress& progress_;
  std::vector<v1::Occurrence> held_back_;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_OCCURRENCE_LINES_H_
