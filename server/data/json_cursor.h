// A cursor over JSON text: strings, integers, and whole values skipped with
// their syntax checked (RFC 8259). What the values mean is the caller's.
#ifndef PENSTOCK_SERVER_DATA_JSON_CURSOR_H_
#define PENSTOCK_SERVER_DATA_JSON_CURSOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::server::data {

// Errors are InvalidArgument "not valid JSON at byte N: ...", N from 0. After
// an error the cursor must not be used. Thread-compatible.
class JsonCursor {
 public:
  // `text` must outlive the cursor.
  explicit JsonCursor(absl::string_view text) : text_(text) {}

  void SkipSpace();
  bool AtEnd() const { return at_ == text_.size(); }
  // The next byte; 0 at the end (a 0 byte is no JSON either way).
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  // Takes `c` if it is next.
  bool Take(char c);
  absl::Status Expect(char c);

  // Takes a string, decoded to UTF-8, into `out` (replaced); null: skips it.
  // Bytes that are no UTF-8 and lone surrogates are refused.
  absl::Status TakeString(std::string* out);

  // Takes a number. `integer` is its value where it is written as an integer
  // (no point, no exponent) of less than 19 digits, else false is in `exact`.
  struct Number {
    bool exact = false;
    int64_t integer = 0;
  };
  absl::StatusOr<Number> TakeNumber();

  // Takes any value. `depth` is how deep the value is nested already; more
  // than `max_depth` is refused ("nested deeper than ...").
  absl::Status SkipValue(int depth, int max_depth);

  absl::Status Error(absl::string_view why) const;

 private:
  absl::Status TakeEscape(std::string* out);
  absl::StatusOr<uint32_t> TakeHex4();
  absl::Status TakeUtf8(std::string* out);
  absl::Status ExpectWord(absl::string_view word);
  absl::Status SkipObject(int depth, int max_depth);
  absl::Status SkipArray(int depth, int max_depth);

  absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_JSON_CURSOR_H_
