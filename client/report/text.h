// Text and numbers as the report shows them.
#ifndef PENSTOCK_CLIENT_REPORT_TEXT_H_
#define PENSTOCK_CLIENT_REPORT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock::client::report {

// For element content and for attributes in double quotes, in HTML and SVG.
// Control characters but tab and newline become U+FFFD.
std::string Escape(absl::string_view text);

// A coordinate: at most `decimals` digits after the point, no trailing zeros,
// never "-0" and never an exponent. Files stay small, golden files stable.
std::string Coordinate(double value, int decimals = 1);

std::string Count(int64_t value);       // "1,638,400"
std::string Bytes(double bytes);        // "3.2 MiB"
std::string Percent(double share);      // "27.3 %"
std::string Seconds(double seconds);    // "1.24 ms", "3.10 s", "12 min 4 s"
std::string Loss(double value);         // "1.6342"
std::string ShortNumber(double value);  // "12.4k", "0.003", "1e-05"
std::string Truncated(absl::string_view text, int characters);  // "embeddi…"

// Characters that are shown of a name, a place or a list of layers.
inline constexpr int kMostName = 200;
std::string EscapedName(absl::string_view text);  // Cut to so many, escaped.

// A note in HTML, "12 more in events.jsonl."; empty for 0.
std::string MoreIn(absl::string_view file, size_t count);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_TEXT_H_
