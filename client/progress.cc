#include "client/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::client {
namespace {

constexpr absl::Duration kTerminalInterval = absl::Milliseconds(100);
constexpr absl::Duration kPlainInterval = absl::Seconds(30);

std::string Rate(double per_second) {
  if (per_second >= 1e6) return absl::StrFormat("%.2fM", per_second / 1e6);
  if (per_second >= 1e3) return absl::StrFormat("%.1fk", per_second / 1e3);
  return absl::StrFormat("%.0f", per_second);
}

// printf writes the sign of a NaN.
std::string Nats(double loss) {
  return std::isnan(loss) ? "nan" : absl::StrFormat("%.4f", loss);
}

}  // namespace

std::string ProgressLine(const v1::StepMetrics& metrics, int64_t steps,
                         absl::Duration eta) {
  std::string line =
      absl::StrFormat("step %d/%d  loss %s  %s tokens/s", metrics.step(), steps,
                      Nats(metrics.loss()), Rate(metrics.tokens_per_second()));
  if (metrics.has_bubble_rate()) {
    absl::StrAppendFormat(&line, "  bubble %.1f %%",
                          100 * metrics.bubble_rate());
  }
  if (metrics.has_validation_loss()) {
    absl::StrAppend(&line, "  validation ", Nats(metrics.validation_loss()));
  }
  if (eta > absl::ZeroDuration()) {
    absl::StrAppend(&line, "  ETA ",
                    absl::FormatDuration(absl::Ceil(eta, absl::Seconds(1))));
  }
  return line;
}

Progress::Progress(Style style, const common::time::Clock& clock,
                   std::function<void(absl::string_view)> write,
                   std::function<int()> columns)
    : style_(style),
      clock_(clock),
      write_(std::move(write)),
      columns_(std::move(columns)) {}

void Progress::OnJob(const v1::Job& job) { steps_ = job.steps(); }

void Progress::OnMetrics(const v1::StepMetrics& metrics) {
  metrics_ = metrics;
  if (metrics.has_bubble_rate()) bubble_rate_ = metrics.bubble_rate();
  if (metrics.has_validation_loss()) {
    validation_loss_ = metrics.validation_loss();
  }
  if (first_step_ == 0) {
    first_step_ = metrics.step();
    first_time_ = clock_.Monotonic();
  }
  Show(metrics.step() == steps_);
}

void Progress::Show(bool last) {
  if (style_ == Style::kNone) return;
  const auto now = clock_.Monotonic();
  const absl::Duration interval =
      style_ == Style::kTerminal ? kTerminalInterval : kPlainInterval;
  if (shown_ && !last && now - last_shown_ < interval) return;
  shown_ = true;
  last_shown_ = now;
  v1::StepMetrics shown = metrics_;
  if (bubble_rate_ >= 0) shown.set_bubble_rate(bubble_rate_);
  if (validation_loss_ >= 0) shown.set_validation_loss(validation_loss_);
  absl::Duration eta;
  if (const int64_t done = metrics_.step() - first_step_; done > 0) {
    eta = (now - first_time_) / done * (steps_ - metrics_.step());
  }
  std::string line = ProgressLine(shown, steps_, eta);
  if (style_ == Style::kTerminal) {
    // The last column stays free: a cursor behind it is in the next line.
    if (const size_t columns = columns_(); columns > 0) {
      line.resize(std::min(line.size(), columns - 1));
    }
    write_(absl::StrCat("\r\x1b[K", line));
    line_open_ = true;
  } else {
    write_(absl::StrCat(line, "\n"));
  }
}

void Progress::Message(absl::string_view line) {
  write_(absl::StrCat(line_open_ ? "\r\x1b[K" : "", line, "\n"));
  line_open_ = false;
}

void Progress::Finish() {
  if (line_open_) write_("\n");
  line_open_ = false;
}

}  // namespace penstock::client
