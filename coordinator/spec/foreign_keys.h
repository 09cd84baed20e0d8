// Hints for keys that no job file has: another tool's name for the same thing,
// the right word in the wrong section, or a near misspelling.
#ifndef PENSTOCK_COORDINATOR_SPEC_FOREIGN_KEYS_H_
#define PENSTOCK_COORDINATOR_SPEC_FOREIGN_KEYS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock::coordinator::spec {

// The hint for the unknown `key` in `section` ("" at the top): the text after
// "unknown key; ", or "" where there is nothing to say. `known_paths` are all
// key paths of the job file.
std::string HintForUnknownKey(absl::string_view section, absl::string_view key,
                              absl::Span<const absl::string_view> known_paths);

// The member of `words` that `word` most likely means: equal but for case and
// separators, or a few edits away; "" where none is near.
absl::string_view Nearest(absl::string_view word,
                          absl::Span<const absl::string_view> words);

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_FOREIGN_KEYS_H_
