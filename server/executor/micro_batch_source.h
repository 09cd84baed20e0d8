// Where the engine gets its micro-batches: the seam to server/data.
#ifndef PENSTOCK_SERVER_EXECUTOR_MICRO_BATCH_SOURCE_H_
#define PENSTOCK_SERVER_EXECUTOR_MICRO_BATCH_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace penstock::server::executor {

// Thread-compatible: confined to the engine thread.
class MicroBatchSource {
 public:
  virtual ~MicroBatchSource() = default;

  // Which sequences: `first` and those that follow, in the numbering of
  // docs/numerics.md (the job's cursor, or the validation windows in order).
  enum class Split { kTraining, kValidation };

  // Fills `ids` and `labels`, both (sequences, sequence_length) or empty where
  // they are not wanted (a rank with the head alone wants no ids). Labels are
  // aligned with the positions, device::kIgnoredLabel where none is given. May
  // read a file; errors end the epoch, and their reason becomes the job's.
  virtual absl::Status Read(Split split, int64_t first, absl::Span<int32_t> ids,
                            absl::Span<int32_t> labels) = 0;
};

}  // namespace penstock::server::executor

#endif  // PENSTOCK_SERVER_EXECUTOR_MICRO_BATCH_SOURCE_H_
