// Live progress of a job on stderr: one line that is rewritten on a terminal,
// otherwise a line every 30 s.
#ifndef PENSTOCK_CLIENT_PROGRESS_H_
#define PENSTOCK_CLIENT_PROGRESS_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "penstock/v1/job_service.pb.h"

namespace penstock::client {

// The line itself: "step 120/300  loss 2.3145  12.4k tokens/s  bubble 31.2 %
// validation 2.410  ETA 1m12s". Fields that are not known yet are left out.
std::string ProgressLine(const v1::StepMetrics& metrics, int64_t steps,
                         absl::Duration eta);

// Thread-compatible.
class Progress {
 public:
  enum class Style { kTerminal, kPlain, kNone };

  // `write` takes bytes for stderr; `columns` says how wide the terminal is, 0
  // where that is not known: a longer line could not be rewritten. Borrows
  // `clock`.
  Progress(Style style, const common::time::Clock& clock,
           std::function<void(absl::string_view)> write,
           std::function<int()> columns);

  void OnJob(const v1::Job& job);
  void OnMetrics(const v1::StepMetrics& metrics);
  // Something to keep: printed above the progress line.
  void Message(absl::string_view line);
  // Ends the live line.
  void Finish();

 private:
  void Show(bool last);

  const Style style_;
  const common::time::Clock& clock_;
  const std::function<void(absl::string_view)> write_;
  const std::function<int()> columns_;
  int64_t steps_ = 0;
  v1::StepMetrics metrics_;
  // Kept from the last step that carried them.
  double bubble_rate_ = -1;
  double validation_loss_ = -1;
  // The first step seen, for the remaining time.
  int64_t first_step_ = 0;
  common::time::MonotonicTime first_time_;
  common::time::MonotonicTime last_shown_;
  bool shown_ = false;
  bool line_open_ = false;
};

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_PROGRESS_H_
