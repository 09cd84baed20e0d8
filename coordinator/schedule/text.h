// The text form of a schedule, as PyTorch's pipeline CSV files have it: one row
// a rank, comma-separated commands `<stage><op><micro-batch>` ("0F0", "1I3",
// "2W1", "0B2"). Lines that start with # are comments. An empty cell is an idle
// place, as PyTorch writes them, and is dropped. Sends and receives are not
// written: lowering adds them.
#ifndef PENSTOCK_COORDINATOR_SCHEDULE_TEXT_H_
#define PENSTOCK_COORDINATOR_SCHEDULE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/schedule/schedule.h"

namespace penstock::coordinator::schedule {

struct CsvOptions {
  int ranks = 1;
  int micro_batches = 1;
  // Unset: what the file's highest stage number asks for.
  std::optional<int> chunks = std::nullopt;
  std::string name = "schedule";  // Of the file, in messages and the result.
};

// The longest text that is taken: every order of a shape that CheckShape lets
// through. It has three commands (F, I and W) for each of at most kMaxCells, of
// at most ten bytes with their commas ("1000F1046,"); half as much again is for
// comments, blanks and idle places.
inline constexpr int64_t kMaxCsvBytes = kMaxCells * 3 * 15;  // 45 MiB

// Parses every byte or refuses. The placement is loop or V, whichever the rows
// fit (loop where neither does; Verify then names the stray command). The
// schedule is not verified.
// InvalidArgument: "NAME:LINE:COLUMN: what is wrong", columns in bytes from 1.
absl::StatusOr<Schedule> ParseCsv(absl::string_view text,
                                  const CsvOptions& options);

// The rows, each ending in a newline, no comments: ParseCsv of it gives the
// same orders.
std::string PrintCsv(const Schedule& schedule);

}  // namespace penstock::coordinator::schedule

#endif  // PENSTOCK_COORDINATOR_SCHEDULE_TEXT_H_
