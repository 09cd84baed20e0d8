#include "coordinator/schedule/verifier.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "coordinator/schedule/grid.h"
#include "coordinator/schedule/memory_use.h"

namespace penstock::coordinator::schedule {
namespace {

// The place where a rank's activations alone pass its limit, if that is why.
absl::Status OverLimit(const Schedule& schedule, LoweringOptions options,
                       const absl::Status& status) {
  const Memory memory = options.memory;
  options.memory.limits.clear();
  ASSIGN_OR_RETURN(const LoweredProgram program, Lower(schedule, options));
  const std::vector<RankParts> parts = PartsOfRanks(program);
  for (int r = 0; r < schedule.ranks(); ++r) {
    const MemoryUse use = MemoryUseOf(program, r, parts[r], memory);
    if (use.peak_held <= memory.limits[r]) continue;
    const Place place{r, CommandsBefore(program, r, use.peak_position)};
    return absl::ResourceExhaustedError(absl::StrCat(
        schedule.name, ": ", Describe(schedule, place), ": holds ",
        use.peak_held, " bytes of activations, ",
        use.peak_held - memory.limits[r], " more than the limit of ",
        memory.limits[r], "\n", MarkedGrid(schedule, place)));
  }
  return status;
}

}  // namespace

absl::Status Verify(const Schedule& schedule, const LoweringOptions& options) {
  return LowerVerified(schedule, options).status();
}

absl::StatusOr<LoweredProgram> LowerVerified(const Schedule& schedule,
                                             const LoweringOptions& options) {
  absl::StatusOr<LoweredProgram> program = Lower(schedule, options);
  if (!program.ok()) {
    const bool memory =
        program.status().code() == absl::StatusCode::kResourceExhausted;
    return memory ? OverLimit(schedule, options, program.status())
                  : program.status();
  }
  RETURN_IF_ERROR(VerifyLowered(*program, options.memory));
  return program;
}

}  // namespace penstock::coordinator::schedule
