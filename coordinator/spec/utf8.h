// Whether bytes are text that a message, a log line and a YAML parser can take.
#ifndef PENSTOCK_COORDINATOR_SPEC_UTF8_H_
#define PENSTOCK_COORDINATOR_SPEC_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace penstock::coordinator::spec {

// The offset of the first byte that is not part of a valid UTF-8 sequence, or
// that is a control character other than tab, line feed and carriage return;
// npos where there is none.
size_t FindNotText(absl::string_view bytes);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_UTF8_H_
