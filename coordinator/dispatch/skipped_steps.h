// Runs of steps that update nothing: said at their first and at their last
// step, not at each. Pure.
#ifndef PENSTOCK_COORDINATOR_DISPATCH_SKIPPED_STEPS_H_
#define PENSTOCK_COORDINATOR_DISPATCH_SKIPPED_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::coordinator::dispatch {

// Steps in a row that may be not finite where they are skipped: weights that
// are not finite themselves never come back.
inline constexpr int64_t kMostNonfiniteSteps = 100;

// Thread-compatible. Of one job.
class SkippedSteps {
 public:
  struct Run {
    std::string kind;  // Of the event: "NONFINITE".
    int64_t first = 0;
    int64_t count = 0;
  };

  // The next step is skipped for `kind`, or not at all (""). Returns the run
  // that it ends, if that had more than one step.
  std::optional<Run> Next(int64_t step, const std::string& kind);
  // Also of the last step's run.
  std::optional<Run> End() { return Next(0, ""); }

  // That of the newest step; count 0: it was not skipped.
  const Run& run() const { return run_; }

 private:
  Run run_;
};

// "steps 3 to 7, 5 in a row, were skipped".
std::string Describe(const SkippedSteps::Run& run);

}  // namespace penstock::coordinator::dispatch

#endif  // PENSTOCK_COORDINATOR_DISPATCH_SKIPPED_STEPS_H_
