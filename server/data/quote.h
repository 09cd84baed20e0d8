// Quoting of a file's bytes in messages: short, printable, whatever they are.
#ifndef PENSTOCK_SERVER_DATA_QUOTE_H_
#define PENSTOCK_SERVER_DATA_QUOTE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace penstock::server::data {

// At most this many bytes of a file show in an error.
inline constexpr int kMaxQuotedBytes = 64;

// The first kMaxQuotedBytes of `bytes` in double quotes, unprintable ones
// escaped; "..." follows where some were left out.
std::string Quote(absl::string_view bytes);

}  // namespace penstock::server::data

#endif  // PENSTOCK_SERVER_DATA_QUOTE_H_
