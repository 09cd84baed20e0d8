// Lines of a file, one after the other, without holding the file.
#ifndef PENSTOCK_SERVER_DATA_LINE_SCANNER_H_
#define PENSTOCK_SERVER_DATA_LINE_SCANNER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::server::data {

inline constexpr int64_t kMaxLineBytes = int64_t{64} << 20;

struct Line {
  int64_t number = 0;       // From 1; blank lines count.
  int64_t offset = 0;       // Of its first byte in the file.
  absl::string_view bytes;  // Without the newline.
};

// Cuts a stream of pieces into lines and calls back for each that is not
// blank (only spaces, tabs and carriage returns). The first line's UTF-8 byte
// order mark is dropped. Thread-compatible.
class LineScanner {
 public:
  using Visitor = absl::FunctionRef<absl::Status(const Line& line)>;

  // Takes the next piece of the file; line views live during the callback.
  // The callback's first error, or InvalidArgument for a line of more than
  // kMaxLineBytes.
  absl::Status Add(absl::string_view piece, Visitor visit);

  // Visits a last line that no newline ends.
  absl::Status Finish(Visitor visit);

 private:
  absl::Status Emit(absl::string_view bytes, Visitor visit);

  int64_t number_ = 1;
  int64_t offset_ = 0;      // Of the line that is being read.
  std::string unfinished_;  // Its bytes from earlier pieces.
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_LINE_SCANNER_H_
