// What somebody else wrote, in messages and log lines: printable, whatever it
// is.
#ifndef PENSTOCK_COMMON_TEXT_QUOTE_H_
#define PENSTOCK_COMMON_TEXT_QUOTE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::common::text {

// At most this many bytes of it show.
inline constexpr size_t kMaxQuotedBytes = 64;

// `bytes` in double quotes, up to a whole character. UTF-8 stays as it is;
// quotes, backslashes, control characters and what is not UTF-8 are escaped as
// in C. "..." before the closing quote: some were left out.
std::string Quoted(absl::string_view bytes);

// All of `bytes` as one line of UTF-8: line feeds and other control characters,
// and what is not UTF-8, are escaped as in C; quotes and backslashes stay.
std::string OneLine(absl::string_view bytes);

// The first `bytes` of `text`, up to a whole character where it is UTF-8, and
// how many more there are; all of it where there are no more.
std::string CutAfter(size_t bytes, std::string text);

}  // namespace penstock::common::text

#endif  // PENSTOCK_COMMON_TEXT_QUOTE_H_
